// space/space.h - all ways to run a task: a sketch (structure) with named decisions. Search
// strategies see this interface and nothing else; how rules build sketches stays inside.
//
// A decision is an ordered list of options; a point holds the index of the chosen option of each.
// Options that stand next to each other are similar, so index +-1 is a neighbour. Some combinations
// are illegal (a register tile that does not fit): sample, mutate, crossover and neighbours never
// return those.
#pragma once

#include <memory>
#include <optional>

#include "hone/base/rng.h"
#include "hone/schedule/bounds.h"
#include "hone/target/target.h"
#include "hone/trial/accuracy.h"

namespace hone::space {

enum class DecisionKind : uint8_t { kTile, kOrder, kUnroll, kVector, kParallel, kTail, kPacking };

struct Decision {
  std::string name;  // "conv2d.ow.tile": a stage and the role of the decision
  DecisionKind kind;
  std::vector<int64_t> options;  // ascending where they are sizes
  size_t role = 0;               // index in `name` at which the role begins
  int64_t extent = 0;            // extent of the axis that a tile divides; 0: it is no tile
  bool scales = false;           // a longer axis wants a larger tile, unlike a register tile
  [[nodiscard]] std::string_view role_name() const { return std::string_view(name).substr(role); }
};

struct Point {
  int sketch = 0;
  std::vector<int> choices;  // one index per decision of the sketch
  bool operator==(const Point&) const = default;
};
[[nodiscard]] uint64_t hash(const Point& point);

// A point made concrete: ready for features (state, bounds) and for lowering.
struct Candidate {
  schedule::State state;
  schedule::Bounds bounds;
  schedule::Steps steps;                    // steps that made the state
  std::shared_ptr<const compute::Dag> dag;  // the task
};

// Makes the candidate of any schedule, whether it is a point of a space or not. Returns an error if
// its steps do not apply.
[[nodiscard]] Result<Candidate> make_candidate(const compute::Dag& dag,
                                               const schedule::Steps& steps);

// Makes the candidate for a task of which nothing is known: the default point of its space.
[[nodiscard]] Result<Candidate> default_candidate(const compute::Dag& dag,
                                                  const target::Target& target);

class Space {
 public:
  // Builds the sketches that the rules find for a task on a target. There is at least one: the last
  // resort runs each stage in a parallel loop.
  [[nodiscard]] static Result<Space> create(const compute::Dag& dag, const target::Target& target,
                                            trial::Accuracy accuracy = trial::Accuracy::kDefault);

  [[nodiscard]] int num_sketches() const { return static_cast<int>(sketches_.size()); }
  [[nodiscard]] const std::vector<Decision>& decisions(int sketch) const;
  [[nodiscard]] std::string algorithm(int sketch) const;  // schedule::algorithm_of its steps
  // Returns whether a sketch exists only to divide work among threads: on one thread another sketch
  // does the same with less work.
  [[nodiscard]] bool is_for_threads(int sketch) const;
  // Returns the FLOPs of the algorithm that needs the fewest, which no schedule can undercut.
  // Winograd's and Strassen's algorithms count only the products and what follows them, a direct
  // one only what known zeros and a causal mask leave (schedule::needed_flops).
  [[nodiscard]] double least_flops() const { return least_flops_; }
  [[nodiscard]] double size() const;  // number of points of all sketches, legal or not

  // Returns a good point of a sketch by rule of thumb, without any model. Sketch 0 uses the direct
  // algorithm.
  [[nodiscard]] Point default_point(int sketch = 0) const;
  [[nodiscard]] std::vector<Point> default_points() const;  // the default point of each sketch
  // Draws a random legal point; all sketches are equally likely. Returns the sketch's default point
  // if hundreds of draws are illegal.
  [[nodiscard]] Point sample(Rng& rng) const;
  // Returns the canonical point of all those that make the same program, as with tiles that are
  // longer than their axis, orders of loops that run once, or treatments of a remainder that does
  // not exist. sample, mutate, crossover and neighbours return canonical points.
  [[nodiscard]] Point canonical(Point point) const;
  // Changes one to three decisions at random. Returns a random sample if dozens of attempts find no
  // other legal point.
  [[nodiscard]] Point mutate(const Point& point, Rng& rng) const;
  // Takes each decision at random from one of the parents. Returns a copy of `a` if the parents are
  // of different sketches or if no legal child is found.
  [[nodiscard]] Point crossover(const Point& a, const Point& b, Rng& rng) const;
  // Returns all legal points that differ by one option of one decision, each program once and not
  // the point's own.
  [[nodiscard]] std::vector<Point> neighbours(const Point& point) const;
  // Encodes the decisions as numbers in [0, 1], one per decision of the sketch, for models that
  // read decisions.
  [[nodiscard]] std::vector<float> encode(const Point& point) const;

  [[nodiscard]] schedule::Steps steps(const Point& point) const;
  // Returns the state and bounds of a point, or an error that says why it is illegal. It takes
  // microseconds.
  [[nodiscard]] Result<Candidate> instantiate(const Point& point) const;
  [[nodiscard]] bool legal(const Point& point) const;
  // Returns the legal point whose steps are equal to the given ones or most similar to them, so
  // that a search can start from a schedule of another source.
  [[nodiscard]] std::optional<Point> locate(const schedule::Steps& steps) const;

 private:
  struct Sketch;
  std::shared_ptr<const compute::Dag> dag_;
  std::vector<std::shared_ptr<const Sketch>> sketches_;
  double least_flops_ = 0;
};

}  // namespace hone::space
