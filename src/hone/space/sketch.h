// space/sketch.h - how rules build sketches (internal to space). A sketch applies the steps that do
// not depend on any decision once; each group then turns its decisions into the remaining steps.
#pragma once

#include <functional>
#include <span>

#include "hone/space/space.h"

namespace hone::space {

// Returns the index of the option closest to `value`.
[[nodiscard]] int nearest_option(const Decision& decision, int64_t value);

// A decision of a sketch, as SketchBuilder::add_decision() returns it. By default it is one that
// the task does not leave open: its value is 1, and setting it has no effect.
class DecisionId {
 public:
  DecisionId() = default;
  explicit DecisionId(size_t number) : number_(static_cast<int>(number)) {}
  [[nodiscard]] bool is_open() const { return number_ >= 0; }
  [[nodiscard]] size_t number() const { return static_cast<size_t>(number_); }

 private:
  int number_ = -1;
};

// Reads the values that a point chose, by decision.
class Choice {
 public:
  Choice(const std::vector<Decision>& decisions, const std::vector<int>& indices)
      : decisions_(decisions), indices_(indices) {}
  [[nodiscard]] int64_t operator[](DecisionId decision) const {
    return options(
        decision)[decision.is_open() ? static_cast<size_t>(indices_[decision.number()]) : 0];
  }
  // Returns the value of a switch or a place, which is 0 where there is no choice.
  [[nodiscard]] int64_t or_zero(DecisionId decision) const {
    return decision.is_open() ? (*this)[decision] : 0;
  }
  [[nodiscard]] std::span<const int64_t> options(DecisionId decision) const {
    return decision.is_open() ? decisions_[decision.number()].options
                              : std::span<const int64_t>(kOne);
  }

 protected:
  static constexpr int64_t kOne[] = {1};
  const std::vector<Decision>& decisions_;
  const std::vector<int>& indices_;
};

// A point under construction.
class MutableChoice : public Choice {
 public:
  MutableChoice(const std::vector<Decision>& decisions, std::vector<int>& indices)
      : Choice(decisions, indices), changed_(indices) {}
  // Returns the chosen index of each decision, for callers that save and restore a choice.
  [[nodiscard]] std::vector<int>& indices() { return changed_; }
  [[nodiscard]] int index(DecisionId decision) const {
    return decision.is_open() ? changed_[decision.number()] : 0;
  }
  void set_index(DecisionId decision, int index) {
    if (decision.is_open()) changed_[decision.number()] = index;
  }
  void set_last(DecisionId decision) {
    set_index(decision, static_cast<int>(options(decision).size()) - 1);
  }
  // Chooses the option closest to `value`.
  void set(DecisionId decision, int64_t value) {
    if (decision.is_open())
      set_index(decision, nearest_option(decisions_[decision.number()], value));
  }
  // Chooses the first option that is at least `value`, or the last one if all are less. The options
  // must ascend.
  void set_at_least(DecisionId decision, int64_t value);
  // Replaces a tile that covers all `whole` points of an axis by the smallest option that does.
  void shorten(DecisionId decision, int64_t whole);

 private:
  std::vector<int>& changed_;
};

// A root stage together with what is computed inside of it.
class Group {
 public:
  virtual ~Group() = default;
  virtual void append_steps(const Choice& choice, schedule::Steps& steps) const = 0;
  [[nodiscard]] virtual bool legal(const Choice& choice) const = 0;
  // Sets this group's decisions to a good rule of thumb.
  virtual void set_default(MutableChoice& choice) const = 0;
  // Sets decisions that change nothing, given the others, to the one value by which they are known.
  virtual void canonicalise(MutableChoice& /*choice*/) const {}
};

struct SketchBuilder {
  const target::Target& target;
  schedule::State state;  // after the structural steps
  schedule::Steps structure = {};
  std::vector<Decision> decisions = {};
  std::vector<std::shared_ptr<const Group>> groups = {};
  // If true, another sketch does the same with less work on one thread.
  bool for_threads = false;

  // Returns the target of a rule for CPUs.
  [[nodiscard]] const target::Cpu& cpu() const { return target.cpu(); }
  [[nodiscard]] Status add_step(schedule::Step step);
  // Adds a decision. A tile divides an axis of `extent` points, and grows with the axis if it
  // `scales`; `extent` is 0 for other decisions.
  [[nodiscard]] DecisionId add_decision(const std::string& stage, std::string_view role,
                                        DecisionKind kind, std::vector<int64_t> options,
                                        int64_t extent = 0, bool scales = false);
  [[nodiscard]] const schedule::StageInfoPtr& info(const std::string& stage) const;
};

// Returns {1, 2, 3, .., limit} thinned out above 8 to divisors of extent and multiples of 2.
[[nodiscard]] std::vector<int64_t> tile_options(int64_t extent, int64_t limit);
// Returns {from, 2 * from, 4 * from, .., most}.
[[nodiscard]] std::vector<int64_t> powers_of_2(int64_t from, int64_t most);
// Fuses loops of a stage, the outermost first, and returns the name of the fused loop. A single
// loop stays as it is.
[[nodiscard]] std::string fuse_loops(const std::string& stage,
                                     const std::vector<std::string>& loops, schedule::Steps& steps);
// Returns the names of axes.
[[nodiscard]] std::vector<std::string> names_of(std::span<const compute::Axis> axes);
// Return the texts of a layout's digits: "oc/32", "oc%16", "oc/16%2".
[[nodiscard]] std::string quotient(const std::string& axis, int64_t divisor);
[[nodiscard]] std::string remainder(const std::string& axis, int64_t modulus);
// Returns the position of an axis among a stage's axes, spatial ones first; -1 if none has that
// name.
[[nodiscard]] int axis_named(const schedule::StageInfo& info, std::string_view name);
// Returns the distance in memory, in elements, of what neighbouring points of an axis (position in
// the stage's axes) read.
[[nodiscard]] int64_t stride_of(const compute::Access& read, size_t axis);
// Returns whether that is one element.
[[nodiscard]] bool is_contiguous(const compute::Access& read, size_t axis);
// Returns the number of lanes of a vector of a stage's results.
[[nodiscard]] int lanes_of(const target::Cpu& target, const schedule::StageInfo& info);
// Returns the spatial axis that moves through the last dimension of the stage's output by one; -1
// if none.
[[nodiscard]] int unit_stride_axis(const schedule::StageInfo& info);

// Inlines the wanted stages into their readers where that is legal, until none is left.
[[nodiscard]] Status inline_stages(SketchBuilder& builder,
                                   const std::function<bool(const compute::Stage&)>& wanted);
// Inlines each pointwise stage that has only one reader, if that is pointwise, too.
[[nodiscard]] Status inline_chains(SketchBuilder& builder);

}  // namespace hone::space
