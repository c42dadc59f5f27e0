// graph/size_follower.h - the work of follow_sizes(), and what rules of operators know and build.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string_view>

#include "hone/graph/expand.h"
#include "hone/graph/loop_body.h"
#include "hone/graph/size_probes.h"

namespace hone::graph {

// A constant is one of these at other sizes.
enum class ConstantKind : uint8_t {
  kFixed,    // the same
  kBox,      // the first elements of it along each dimension: a table of positions, a causal mask
  kNumbers,  // an array of the same shape, with elements that follow from the symbols
  kOther,
};

class SizeFollower {
 public:
  SizeFollower(Graph& graph, const Graph& raw, const std::vector<SizeProbe>& probes,
               const std::vector<SizeSymbol>& symbols);
  Status run(const std::map<std::string, std::vector<SizeForm>>& inputs);
  // The graph that has a loop, while its body is followed. `operands` receives values of it that
  // the body captures as well, behind the others.
  struct Enclosing {
    SizeFollower* follower = nullptr;  // null outside of loops
    ExpandContext* c = nullptr;
    const LoopBody* loop = nullptr;
    std::vector<ValueId>* operands = nullptr;
  };
  // Follows the body of a loop: `inputs` are the parts of its inputs. The body gets one more input,
  // the sizes of the run. The first `carried` of its outputs are values for the next turn.
  Status run_body(const Enclosing& around, const std::vector<ShapeParts>& inputs, size_t carried);

  [[nodiscard]] const Graph& graph() const { return graph_; }
  [[nodiscard]] const std::vector<SizeProbe>& probes() const { return probes_; }
  // Returns the parts of each dimension, also of a value that does not vary.
  [[nodiscard]] ShapeParts parts_of(ValueId id) const;
  [[nodiscard]] bool varies(ValueId id) const { return !graph_.value(id).forms.empty(); }
  [[nodiscard]] bool varies(ValueId id, size_t dim) const;
  // Returns the form that gives the numbers of the samples, as an index into Varying::forms, or
  // kNoForm if they do not vary; nullopt if no form does.
  [[nodiscard]] std::optional<int> form_of(const std::vector<SizeSample>& samples);
  // Returns the part that the extent of a dimension is at all probes; nullopt if no form gives it.
  [[nodiscard]] std::optional<SizePart> seen_part(ValueId id, size_t dim);
  // Likewise, where the extent is one that has these parts, plus one of the offsets, divided and
  // rounded down.
  [[nodiscard]] std::optional<SizePart> divided_part(ValueId id, size_t dim, const DimParts& from,
                                                     const std::vector<int64_t>& offsets,
                                                     int64_t divisor);
  // Likewise, where the extent is one that has these parts plus a number, rounded up to a multiple,
  // plus a number; also nullopt if several such give what was seen, and none of them just rounds
  // up.
  [[nodiscard]] std::optional<SizePart> rounded_part(ValueId id, size_t dim, const DimParts& from);
  // Returns the form that gives a number that follows from the extent of a dimension with these
  // parts: (extent + an offset) / divisor, with bounds or without. `number_at` tells it for each
  // extent that the dimension may have, unless it does not matter there. If no such form does, or
  // the extent is not a single one, the form that `seen` finds from a few sizes is tested at all.
  [[nodiscard]] std::optional<int> exact_form(
      const DimParts& from, int64_t divisor, const std::function<std::optional<int>()>& seen,
      const std::function<std::optional<int64_t>(int64_t extent)>& number_at);
  // Returns the form of a sum of extents; nullopt if there is none, kNoForm if it does not vary.
  [[nodiscard]] std::optional<int> sum_form(const std::vector<DimParts>& extents);
  // Returns whether values with these parts have as many elements as each other at all sizes.
  [[nodiscard]] bool have_as_many(const ShapeParts& a, const ShapeParts& b) const;
  // Parts that are as large at the smallest sizes as at the largest do not vary.
  void set_parts(ValueId id, ShapeParts parts);
  ConstantKind kind_of_constant(ValueId id);

  // These build nodes. Returns the value of a form, or the extent of a dimension, in a run: an i64
  // scalar.
  ValueId size_of(ExpandContext& c, int form);
  ValueId extent_of(ExpandContext& c, const DimParts& parts);
  // Returns where elements lie along a dimension with these parts, by their numbers among those of
  // a run. A number that no element of the run has gets any place.
  ValueId places_of(ExpandContext& c, ValueId numbers, const DimParts& parts);
  // Returns x with the elements of a run side by side along a dimension; nullopt if no form tells
  // their number.
  std::optional<ValueId> side_by_side(ExpandContext& c, ValueId x, size_t dim);
  // Tells that elements of x, which does not vary, are undefined beyond these parts. Only a reader
  // that looks at none of them takes it.
  void set_undefined_beyond(ValueId x, ShapeParts parts) { defined_[x] = std::move(parts); }
  // Returns the elements of x at `places`, of which this is known, along a dimension.
  ValueId gathered(ExpandContext& c, ValueId x, ValueId places, size_t dim, RunPlaces known);
  // Returns x with `value` where `dims` are beyond their extents. Fill 0 is remembered.
  ValueId filled(ExpandContext& c, ValueId x, const std::vector<size_t>& dims, double value);
  // Returns the value by whose id probes know this one: the constant instead of which it is
  // computed at run time, or itself.
  [[nodiscard]] ValueId origin(ValueId id) const {
    const auto at = origins_.find(id);
    return at == origins_.end() ? id : at->second;
  }
  // Replaces data whose elements follow from the sizes by the same computed at run time.
  Result<ValueId> data_at_run_time(ExpandContext& c, ValueId constant);
  // Returns the node that makes a value in the graph that is being built; null if none does yet.
  [[nodiscard]] const Node* producer(ValueId id);
  // Tells that elements of x beyond the extent of a dimension are 0.
  void set_zero_beyond(ValueId x, size_t dim) { zero_beyond_.insert({x, dim}); }
  [[nodiscard]] bool is_zero_beyond(ValueId x, size_t dim) const {
    return zero_beyond_.contains({x, dim});
  }
  [[nodiscard]] std::string text_of(const std::vector<int64_t>& symbols) const {
    return to_text(graph_.varying.symbols, symbols);
  }

 private:
  [[nodiscard]] bool is_always_largest(const SizePart& part) const;
  Status follow(Node node);
  Status follow_nodes(std::vector<Node> nodes);
  Status follow_loop(Node node);
  // Returns the loops that a loop is at the sizes of the probes, or an error if it is another one.
  Result<std::vector<const LoopBody*>> loops_of_probes(const Node& node) const;
  Status set_turns(ExpandContext& c, Node& node, const std::vector<const LoopBody*>& loops);
  // Gives the results of a loop their parts, which its operands and what its body makes tell.
  Status declare_results(ExpandContext& c, Node node);
  // Returns the value of a constant of kind kNumbers in a run; nullopt if its elements are of
  // another kind.
  std::optional<ValueId> numbers_at_run_time(ExpandContext& c, ValueId constant);
  // Captures the value that a constant of the graph with the loop has in a run; nullopt if it is
  // none of that graph.
  Result<std::optional<ValueId>> captured_at_run_time(ValueId constant);
  // Computes what the import computed, by the node of the file that has this result.
  Result<ValueId> computed_again(const Node& node, ValueId constant);
  // Returns whether there are twins of a value where each symbol differs from the largest.
  [[nodiscard]] bool is_seen(ValueId id) const;
  // Returns whether a result is made in the same way in a probe, without regard to its operands.
  [[nodiscard]] bool is_made_alike(const Node& node, ValueId out, const SizeProbe& probe) const;
  [[nodiscard]] bool is_made_here(ValueId id) const { return static_cast<size_t>(id) >= known_; }
  Status check_alike(const Node& node, bool varying) const;
  Status check_parts(const Node& node) const;
  Status follow_outputs();
  void finish_nodes();  // names them and hands them over to the graph
  ValueId mask_of(ExpandContext& c, const DimParts& parts);
  [[nodiscard]] bool is_box(const Tensor& whole, const Tensor& part) const;
  std::optional<int> number_form(ValueId constant, int64_t element);
  [[nodiscard]] const SizeForm& varying_form(int form) const {
    return graph_.varying.forms[static_cast<size_t>(form)];
  }
  // Returns whether a form has the numbers of all samples.
  [[nodiscard]] bool gives(const SizeForm& form, const std::vector<SizeSample>& samples) const;
  [[nodiscard]] int64_t sum_at(const std::vector<DimParts>& extents,
                               const std::vector<int64_t>& symbols) const;
  // Returns the form that exact_form() looks for first.
  std::optional<int> form_of_numbers(
      const DimParts& from, int64_t divisor,
      const std::function<std::optional<int64_t>(int64_t extent)>& number_at);
  // Returns whether a form, or kNoForm, is the sum of extents (at_all_sizes).
  [[nodiscard]] bool is_sum(int form, const std::vector<DimParts>& extents) const;
  [[nodiscard]] int64_t extent_at(const DimParts& parts, const std::vector<int64_t>& symbols) const;
  // Returns whether this holds as one symbol after the other varies, while the others have their
  // largest values, and their smallest.
  [[nodiscard]] bool at_all_sizes(
      const std::function<bool(const std::vector<int64_t>& symbols)>& holds) const;
  // An extent that is rounded: step * quotient + rest.
  struct Rounding {
    int64_t step = 0, rest = 0;
    SizeForm quotient;
    bool is_plain = false;  // the extent rounded up to a multiple of the step
  };
  // Adds those with this step that give the numbers: with the least and the largest offset, between
  // which all others are, and the plain one.
  void add_roundings(const SizeForm& extent, int64_t most, int64_t step,
                     const std::vector<SizeSample>& samples, std::vector<Rounding>& found) const;
  [[nodiscard]] bool are_alike(const std::vector<Rounding>& roundings) const;
  // Returns the form that has the numbers of all samples: one of the graph, or one that is fitted.
  std::optional<int> fitted_form(const std::vector<SizeSample>& samples);
  // Returns the multiple of a form, plus a number, that gives the numbers; nullopt if there is
  // none.
  [[nodiscard]] std::optional<Rounding> multiple_of(const SizeForm& form,
                                                    const std::vector<SizeSample>& samples) const;
  // Returns the multiple, plus a number, of a form of the graph that gives the numbers; nullopt if
  // there is none, or several that are not alike.
  std::optional<int> multiple_of_known(const std::vector<SizeSample>& samples);
  // Returns the quotient of a form, with one of the offsets added, that gives the numbers.
  std::optional<int> quotient_form(const SizeForm& form, const std::vector<int64_t>& offsets,
                                   int64_t divisor, const std::vector<SizeSample>& samples);
  [[nodiscard]] bool is_small(const SizeForm& form) const;
  // Returns the index of a form, which becomes one of the graph's.
  std::optional<int> index_of(const SizeForm& form);
  std::optional<int> index_of(const Rounding& rounding);
  // Returns the extents of a dimension at all sizes at which the model was looked at; nullopt if a
  // value has another rank at one of them.
  [[nodiscard]] std::optional<std::vector<SizeSample>> samples_of(ValueId id, size_t dim) const;

  Graph& graph_;
  const Graph& raw_;
  const std::vector<SizeProbe>& probes_;
  Enclosing enclosing_;
  std::map<ValueId, const Node*> file_nodes_;  // by their only result
  std::vector<int64_t> most_;                  // largest values of the symbols
  bool full_ = false;                          // a form was one more than kMaxForms
  size_t known_ = 0;                           // number of values that the import made
  std::vector<Node> nodes_;
  std::map<ValueId, size_t> producers_;  // indices in nodes_ of the first listed_ nodes
  size_t listed_ = 0;
  std::map<ValueId, ConstantKind> constants_;
  std::map<ValueId, ValueId> again_, origins_;  // constants that are computed at run time; back
  std::map<int, ValueId> sizes_;                // by form
  std::map<std::vector<std::pair<int, int64_t>>, ValueId> masks_;
  std::map<std::tuple<ValueId, std::vector<size_t>, double>, ValueId> filled_;
  std::map<std::pair<ValueId, size_t>, ValueId> side_by_side_;
  std::set<std::pair<ValueId, size_t>> zero_beyond_;
  std::map<ValueId, RunPlaces> run_places_;  // by the result that is gathered
  std::map<ValueId, ShapeParts> defined_;    // see set_undefined_beyond()
};

// The work of a rule: it gives the results of `node` their parts, after it changed the operands of
// the node or, with `replaced`, built other nodes that compute its results.
struct SizeRule {
  SizeFollower& sizes;
  ExpandContext& c;
  Node& node;
  bool replaced = false;
};
struct SizeRuleOf {
  std::string_view type;
  Status (*apply)(SizeRule&);
  // Bits of operands that are parameters, which the rule reads itself; others have to be data that
  // is the same at all sizes, or its first elements.
  unsigned parameters = 0;
};
// Returns the rule of an operator; null if it has none.
[[nodiscard]] const SizeRuleOf* size_rule_of(const Node& node);

// Returns whether elements of a dimension lie side by side in a run: of its parts of more than one
// element only the slowest one varies.
[[nodiscard]] bool is_contiguous(const DimParts& parts);
// Returns the part that the extent of a dimension is at all sizes at which the model was looked at,
// or an error if there is none.
[[nodiscard]] Result<SizePart> part_of(SizeRule& rule, ValueId out, size_t dim);
// The error that says so.
[[nodiscard]] Status does_not_follow(const SizeRule& rule, ValueId out, size_t dim);
// Returns the dimension of operand 0 that the attribute `axis` names, or `otherwise` if the node
// has none.
[[nodiscard]] size_t axis_of(const SizeRule& rule, int64_t otherwise);
// Returns whether bodies of operators are told how many elements a run has, and end there. GPUs
// recognise these bodies, as they are without such numbers.
[[nodiscard]] bool counts_in_bodies(const SizeRule& rule);
// Returns the extent of a dimension in a run as an operand of a body, an i64 [1].
[[nodiscard]] ValueId count_of(SizeRule& rule, const DimParts& parts);
// Makes the node the operator that takes such operands: hone.CumSum for CumSum.
void take_counts(SizeRule& rule);

// Makes elements of a run lie side by side along a dimension of an operand, which is moved where
// they do not.
[[nodiscard]] Status make_contiguous(SizeRule& rule, ValueId& operand, size_t dim);
// Joins what operands tell of a dimension that they share; `known` is empty before the first one.
// Returns an error if element i does not lie at the same place in both.
[[nodiscard]] Status join_parts(const SizeRule& rule, DimParts& known, const DimParts& own);

// Returns a list as the elements along dimension `dim` of a value of a rank.
[[nodiscard]] ValueId along(ExpandContext& c, ValueId list, size_t dim, size_t rank);
// Returns which places are 0 or more, and less than an extent.
[[nodiscard]] ValueId are_inside(ExpandContext& c, ValueId places, ValueId extent);

// A dimension of an operand that others have, too.
struct SharedDim {
  ValueId* operand;
  size_t dim;
};
// Joins what operands tell of a dimension that they share, after it moved their elements to the
// same places.
[[nodiscard]] Status share_parts(SizeRule& rule, const std::vector<SharedDim>& shared,
                                 DimParts& parts);

// Makes an operand hold indices from 0 on into a dimension that may vary: those from the end count
// from the end of what a run has, and those beyond it stand for the nearest element, as in a
// dimension that does not vary.
[[nodiscard]] Status read_indices(SizeRule& rule, size_t operand, const DimParts& extent,
                                  bool varies);

// Likewise for tuples of indices, the last dimension of the operand, into `depth` dimensions of a
// value with these parts, from dimension `first` on.
void read_tuples(SizeRule& rule, size_t operand, const ShapeParts& parts, size_t first,
                 size_t depth);

// The rules by their families.
[[nodiscard]] std::span<const SizeRuleOf> size_rules_of_extents();
[[nodiscard]] std::span<const SizeRuleOf> size_rules_of_grids();
[[nodiscard]] std::span<const SizeRuleOf> size_rules_of_pads();
[[nodiscard]] std::span<const SizeRuleOf> size_rules_of_reductions();
[[nodiscard]] std::span<const SizeRuleOf> size_rules_of_resizes();
[[nodiscard]] std::span<const SizeRuleOf> size_rules_of_scatters();
[[nodiscard]] std::span<const SizeRuleOf> size_rules_of_shapes();
[[nodiscard]] std::span<const SizeRuleOf> size_rules_of_slices();
[[nodiscard]] std::span<const SizeRuleOf> size_rules_of_sums();
[[nodiscard]] std::span<const SizeRuleOf> size_rules_of_norms();
[[nodiscard]] std::span<const SizeRuleOf> size_rules_of_places();
[[nodiscard]] std::span<const SizeRuleOf> size_rules_of_unpools();
[[nodiscard]] std::span<const SizeRuleOf> size_rules_of_windows();

// Returns x as float32 if its type has fewer bits than that.
[[nodiscard]] ValueId widened(SizeRule& rule, ValueId x);
// Returns x with a dimension for each part of some dimensions; `dims` become those of the result.
[[nodiscard]] ValueId with_parts_apart(SizeRule& rule, ValueId x, std::vector<size_t>& dims);
// Returns what a reduction of this type makes of the elements of x that a run has along `dims`.
[[nodiscard]] ValueId reduce_run(SizeRule& rule, const std::string& type, ValueId x,
                                 const std::vector<size_t>& dims, bool keep);
// Returns the sum of the elements of x that a run has along `dims`, divided by their number.
[[nodiscard]] ValueId mean_of(SizeRule& rule, ValueId x, const std::vector<size_t>& dims,
                              bool keep);
// Makes this mean the result.
void build_mean(SizeRule& rule, ValueId x, const std::vector<size_t>& dims, bool keep);

}  // namespace hone::graph
