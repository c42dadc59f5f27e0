// space/sketch.h - how rules build sketches (internal to space). A sketch applies the steps that do
// not depend on any decision once; each group then turns its decisions into the remaining steps.
#pragma once

#include <functional>

#include "hone/space/space.h"

namespace hone::space {

// Reads the values that a point chose, by decision.
class Choice {
 public:
  Choice(const std::vector<Decision>& decisions, const std::vector<int>& choices)
      : decisions_(decisions), choices_(choices) {}
  [[nodiscard]] int64_t operator[](int decision) const {
    return decisions_[decision].options[choices_[decision]];
  }

 private:
  const std::vector<Decision>& decisions_;
  const std::vector<int>& choices_;
};

// A root stage together with what is computed inside of it.
class Group {
 public:
  virtual ~Group() = default;
  virtual void append_steps(const Choice& choice, schedule::Steps& steps) const = 0;
  [[nodiscard]] virtual bool legal(const Choice& choice) const = 0;
  // Sets the choices of this group's decisions to a good rule of thumb.
  virtual void set_default(std::vector<int>& choices) const = 0;
  // Sets decisions that change nothing, given the others, to the one value by which they are known.
  virtual void canonicalise(std::vector<int>& /*choices*/) const {}
};

// Whether spaces of earlier programs did not have decisions of this role; whether they are of
// blocks of a product.
[[nodiscard]] bool is_newer_decision(std::string_view role);
[[nodiscard]] bool is_block_decision(std::string_view role);

struct SketchBuilder {
  const target::Target& target;
  schedule::State state;  // after the structural steps
  schedule::Steps structure;
  std::vector<Decision> decisions;
  std::vector<std::shared_ptr<const Group>> groups;
  // Another sketch does the same with less work where there is one thread.
  bool for_threads = false;

  [[nodiscard]] Status add_step(schedule::Step step);
  // A tile that divides `extent` points and grows with them if it `scales`; 0: no tile.
  [[nodiscard]] int add_decision(const std::string& stage, std::string_view role, DecisionKind kind,
                                 std::vector<int64_t> options, int64_t extent = 0,
                                 bool scales = false);
  // Becomes `other`, a copy in which a rule was tried, of the same target.
  void take(SketchBuilder&& other);
};

// Index of the option closest to `value`.
[[nodiscard]] int nearest_option(const Decision& decision, int64_t value);
// Index of the first option that is `value` or more, of the last if all are less; they ascend.
[[nodiscard]] int first_option(const Decision& decision, int64_t value);
// A tile of the whole axis or more becomes the smallest such one; decision -1: there is none.
void shorten_tile(const std::vector<Decision>& decisions, int decision, int64_t whole,
                  std::vector<int>& choices);
// {1, 2, 3, .., limit} thinned out above 8 to divisors of extent and multiples of 2.
[[nodiscard]] std::vector<int64_t> tile_options(int64_t extent, int64_t limit);
// Makes one loop of several of a stage, the outermost first; its name, the loop's own if it is one.
[[nodiscard]] std::string fuse_loops(const std::string& stage,
                                     const std::vector<std::string>& loops, schedule::Steps& steps);
// Texts of a layout's digits: "oc/32", "oc%16", "oc/16%2".
[[nodiscard]] std::string quotient(const std::string& axis, int64_t divisor);
[[nodiscard]] std::string remainder(const std::string& axis, int64_t modulus);
// Position among a stage's axes, spatial ones first; -1 if none has that name.
[[nodiscard]] int axis_named(const schedule::StageInfo& info, std::string_view name);
// Neighbouring points of an axis (position in the stage's axes) are neighbours in memory.
[[nodiscard]] bool is_contiguous(const compute::Access& read, size_t axis);
// Of a vector of a stage's results.
[[nodiscard]] int lanes_of(const target::Target& target, const schedule::StageInfo& info);
// The spatial axis that moves through the last dimension of the stage's output by one; -1 if none.
[[nodiscard]] int unit_stride_axis(const schedule::StageInfo& info);

// Rules. Each returns false if it does not apply to the stage.
// A reduction (accumulator) with its pointwise epilogue: multi-level tiling around a register tile.
[[nodiscard]] bool add_contraction(SketchBuilder& builder, const std::string& epilogue,
                                   const std::string& reduction);
// How well a stage suits a rule, as a sum vector lanes along another axis: not at all, as another
// way, or as the best one.
enum class Fit : uint8_t { kNone, kPossible, kBest };
struct DotOptions {
  std::string packed = {};  // the stage that makes the constant operand; "": one is made if it can
  int fixed = 0;            // so many of the epilogue's leading axes stay untiled
};
// A reduction with its pointwise epilogue, its lanes along contiguous elements of the sum.
[[nodiscard]] Fit add_dot(SketchBuilder& builder, const std::string& epilogue,
                          const std::string& reduction, const DotOptions& options = {});
// A product of few columns with its epilogue, its lanes along rows that lie side by side or are
// packed so.
[[nodiscard]] Fit add_row_lanes(SketchBuilder& builder, const std::string& epilogue,
                                const std::string& reduction);
// A reduction with its epilogue, in parts of the sum that run in parallel and are added up in a
// phase of their own.
[[nodiscard]] bool add_split_sum(SketchBuilder& builder, const std::string& epilogue,
                                 const std::string& reduction);
// A reduction with its epilogue, its data copied into the order of the register tiles first.
[[nodiscard]] bool add_im2col(SketchBuilder& builder, const std::string& epilogue,
                              const std::string& reduction);
// A convolution with its epilogue by Winograd's F(outputs, taps).
[[nodiscard]] bool add_winograd(SketchBuilder& builder, const std::string& epilogue,
                                const std::string& conv, int64_t outputs);
// A product of large matrices with its epilogue by Strassen's algorithm.
[[nodiscard]] bool add_strassen(SketchBuilder& builder, const std::string& epilogue,
                                const std::string& product);
// The whole task as reductions along rows with what is computed of them, if it is that.
[[nodiscard]] bool add_rows(SketchBuilder& builder);
// The same where rows are few and long: in parts, each stage a phase over them.
[[nodiscard]] bool add_long_rows(SketchBuilder& builder);
// Stages that are wanted go into their readers where that is legal, until none is left.
[[nodiscard]] Status inline_stages(SketchBuilder& builder,
                                   const std::function<bool(const compute::Stage&)>& wanted);
// A pointwise stage goes into its reader if that is pointwise, too, and the only one.
[[nodiscard]] Status inline_chains(SketchBuilder& builder);
// The whole task as a depthwise convolution whose result a product over the channels takes.
[[nodiscard]] bool add_separable(SketchBuilder& builder);
// The whole task as attention: softmax of products, times values; of all keys, where their scores
// fit a cache (tiling 0), or of one tile of keys after the other, where there are enough (tiling n:
// by the n-th length of a tile).
[[nodiscard]] bool add_attention(SketchBuilder& builder, size_t tiling = 0);
// A pointwise root stage: fused outer loops in parallel, one axis vectorized.
[[nodiscard]] bool add_pointwise(SketchBuilder& builder, const std::string& stage);
// An extern stage that is a scan: neighbouring points take their steps together.
[[nodiscard]] bool add_scan(SketchBuilder& builder, const std::string& stage);
// A scan of few long rows, each in parts for several threads; the whole Dag.
[[nodiscard]] Fit add_scan_parts(SketchBuilder& builder);
// Any extern stage: all its axes in parallel.
void add_extern(SketchBuilder& builder, const std::string& stage);
// Anything: the outermost spatial axis in parallel, nothing else.
void add_fallback(SketchBuilder& builder, const std::string& stage);

}  // namespace hone::space
