// space/subspace.h - the part of a space in which only some decisions move (Fasor, section 5): the
// others stay as a base point has them. It is a cheap view: points, encodings, legal and canonical
// points are those of the space.
//
// A point is of the part if it is what Space::canonical() makes of a legal point whose fixed
// decisions are the base point's. (Fixed decisions are judged before that: canonical() may change
// one that has no effect, and it stays fixed.)
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hone/space/space.h"

namespace hone::space {

// Returns the role of a decision without the names of stages that some begin with: "shared" of
// "data.shared". It means the same in every task.
[[nodiscard]] std::string_view common_role(const Decision& decision);
// Returns the common roles of all decisions, and those of decisions that have more than one option,
// sorted and each once.
[[nodiscard]] std::set<std::string> roles(const Space& space);
[[nodiscard]] std::vector<std::string> open_roles(const Space& space);

// The decisions that may move.
struct Movable {
  // Decisions of these common roles move. If there is no set, all do.
  std::optional<std::set<std::string, std::less<>>> roles = {};
  // If true, tiles have only lengths that are powers of two, or that of the base point.
  bool powers_of_two = false;
  // Legal points that fixed decisions are taken from, at most one of each sketch. Other sketches
  // have their default points.
  std::vector<Point> bases = {};
};

class Subspace {
 public:
  // The whole space. It must outlive the part.
  explicit Subspace(const Space& space) : space_(&space) {}
  Subspace(const Space& space, const Movable& movable);

  [[nodiscard]] const Space& space() const { return *space_; }
  [[nodiscard]] bool is_whole() const { return parts_.empty(); }
  // Returns whether some decision may have more than one option.
  [[nodiscard]] bool can_move() const;
  [[nodiscard]] double size() const;  // number of points of all sketches, legal or not
  // Returns the indices of the options that a decision may have, ascending. A fixed decision has
  // one.
  [[nodiscard]] std::vector<int> options(int sketch, size_t decision) const;
  // Returns the index of the option so many steps from the one that the point chose, among those
  // that the decision may have; the first or last one if there are fewer.
  [[nodiscard]] int moved(const Point& point, size_t decision, int steps) const;
  // Gives fixed decisions the values of the base point, and others the next larger option that they
  // may have. The result may be illegal. In the whole space it is the point.
  [[nodiscard]] Point hold(Point point) const;
  // Returns the point of the part that is most like a legal point; movable decisions give way where
  // fixed ones are illegal with them. In the whole space it is Space::canonical().
  [[nodiscard]] Point project(const Point& point) const;

  // These do what Space's functions of the same names do, and return points of the part, whatever
  // point they start from. In the whole space they are the same.
  [[nodiscard]] Point sample(Rng& rng) const;
  [[nodiscard]] Point mutate(const Point& point, Rng& rng) const;
  [[nodiscard]] Point crossover(const Point& a, const Point& b, Rng& rng) const;
  [[nodiscard]] std::vector<Point> neighbours(const Point& point) const;

 private:
  // The decisions of a sketch that may move.
  struct Part {
    std::vector<int> base;                  // choices of the base point
    std::vector<std::vector<int>> options;  // per decision, the indices that it may have
    std::vector<size_t> movable;            // decisions that may have several
  };
  [[nodiscard]] const Part& part(int sketch) const { return parts_[static_cast<size_t>(sketch)]; }
  // Changes a point to one of the part, which hold() and Space::canonical() leave as it is. Returns
  // false if that is not legal.
  [[nodiscard]] bool settle(Point& point) const;

  const Space* space_;
  std::vector<Part> parts_;  // one for each sketch; empty: all moves
};

}  // namespace hone::space
