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
  std::string name;  // "conv2d.ow.tile": a stage, then what is decided of it
  DecisionKind kind;
  std::vector<int64_t> options;  // ascending where they are sizes
  size_t role = 0;               // where the part after the stage begins in `name`
  int64_t extent = 0;            // points that a tile divides; 0: it is no tile
  bool scales = false;           // a longer axis wants a larger tile: it is no register tile
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
  schedule::Steps steps;                    // that made the state
  std::shared_ptr<const compute::Dag> dag;  // of the task
};

// Of any schedule, whether it is a point of a space or not; an error if its steps do not apply.
[[nodiscard]] Result<Candidate> make_candidate(const compute::Dag& dag,
                                               const schedule::Steps& steps);

// The schedule of a task of which nothing is known: the default point of its space.
[[nodiscard]] Result<Candidate> default_candidate(const compute::Dag& dag,
                                                  const target::Target& target);

class Space {
 public:
  // The sketches that the rules find for a task on a target. Never empty: the last resort runs
  // each stage in a parallel loop.
  [[nodiscard]] static Result<Space> create(const compute::Dag& dag, const target::Target& target,
                                            trial::Accuracy accuracy = trial::Accuracy::kDefault);

  [[nodiscard]] int num_sketches() const { return static_cast<int>(sketches_.size()); }
  [[nodiscard]] const std::vector<Decision>& decisions(int sketch) const;
  [[nodiscard]] std::string algorithm(int sketch) const;  // schedule::algorithm_of its steps
  // Whether a sketch only divides among threads what another one does with less work on one.
  [[nodiscard]] bool is_for_threads(int sketch) const;
  // The arithmetic of the algorithm with the least; of Winograd's and Strassen's only the
  // products and what follows them, of a direct one what known zeros and a causal mask leave
  // (schedule::needed_flops), so that no schedule can do with less.
  [[nodiscard]] double least_flops() const { return least_flops_; }
  [[nodiscard]] double size() const;  // points, legal or not, over all sketches

  // A good point by rule of thumb, without any model; of sketch 0, the direct algorithm, unless
  // another is named.
  [[nodiscard]] Point default_point(int sketch = 0) const;
  [[nodiscard]] std::vector<Point> default_points() const;  // of every sketch
  // Of the sketches one like the other; its default point if hundreds of draws are illegal.
  [[nodiscard]] Point sample(Rng& rng) const;
  // Many points make the same program: tiles that are longer than their axis, orders of loops that
  // run once, ways to treat a rest that there is not. The one that stands for all of them: sample,
  // mutate, crossover and neighbours return no others.
  [[nodiscard]] Point canonical(Point point) const;
  // Changes one to three decisions.
  [[nodiscard]] Point mutate(const Point& point, Rng& rng) const;
  // Each decision from one of the parents; of one sketch, else a copy of `a`.
  [[nodiscard]] Point crossover(const Point& a, const Point& b, Rng& rng) const;
  // All legal points at index distance one, each program once and not the point's own.
  [[nodiscard]] std::vector<Point> neighbours(const Point& point) const;
  // Numbers in [0, 1] for models that read decisions; length fixed per sketch.
  [[nodiscard]] std::vector<float> encode(const Point& point) const;

  [[nodiscard]] schedule::Steps steps(const Point& point) const;
  // State and bounds of a point, or why it is illegal. Costs microseconds.
  [[nodiscard]] Result<Candidate> instantiate(const Point& point) const;
  [[nodiscard]] bool legal(const Point& point) const;
  // The point whose steps are equal to the given ones, or the nearest: a foreign schedule as a
  // start.
  [[nodiscard]] std::optional<Point> locate(const schedule::Steps& steps) const;

 private:
  struct Sketch;
  std::shared_ptr<const compute::Dag> dag_;
  std::vector<std::shared_ptr<const Sketch>> sketches_;
  double least_flops_ = 0;
};

}  // namespace hone::space
