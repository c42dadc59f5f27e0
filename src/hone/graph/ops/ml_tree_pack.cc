#include "hone/graph/ops/ml_tree_pack.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>

namespace hone::graph {
namespace {

constexpr int64_t kDeepest = 10;    // of complete trees
constexpr int64_t kPadding = 31;    // at most so many numbers of added leaves for each real leaf
constexpr int64_t kFewLeaves = 16;  // as many numbers the leaves of a complete tree may always have
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kRecord = 2;  // rows of a node that names its children
constexpr uint64_t kNever = 0;  // no key is at most this
// As many rows of nodes, which are two numbers of 4 bytes or 8, all trees may have.
constexpr int64_t kMostRows = kMaxMadeBytes / 8;

// A test, or a leaf.
struct Step {
  int64_t leaf = -1;  // the ensemble's node
  int64_t feature = 0;
  uint64_t split = 0;  // a key
  bool nan_left = false;
  size_t left = 0, right = 0;
  int64_t depth = 0, leaves = 1;  // of what hangs on it; leaves that are reached twice count twice
};

// The tests that stand for an ensemble's nodes, children before their parents.
class Steps {
 public:
  Steps(const TreeEnsemble& trees, DType type)
      : trees_(trees), type_(type), made_(trees.nodes.size(), kNone) {}

  // Returns the step of a node.
  size_t of(int64_t node) {
    const auto at = static_cast<size_t>(node);
    if (made_[at] == kNone) made_[at] = make(node);
    return made_[at];
  }
  [[nodiscard]] const Step& operator[](size_t step) const { return steps_[step]; }
  [[nodiscard]] const std::vector<Step>& all() const { return steps_; }

 private:
  static constexpr size_t kNone = SIZE_MAX;

  [[nodiscard]] uint64_t key(double x) const { return tree_key(type_, x); }

  size_t add(Step step) {
    steps_.push_back(step);
    return steps_.size() - 1;
  }

  size_t test(const TreeNode& node, uint64_t split, size_t left, size_t right, bool nan_left) {
    // What every number fails and NaN passes is what every number passes and NaN fails.
    if (split < key(-kInfinity) && nan_left) return test(node, key(kInfinity), right, left, false);
    const Step &a = steps_[left], &b = steps_[right];
    const int64_t leaves = std::min(a.leaves + b.leaves, std::numeric_limits<int64_t>::max() / 4);
    return add({.feature = node.feature,
                .split = split,
                .nan_left = nan_left,
                .left = left,
                .right = right,
                .depth = std::max(a.depth, b.depth) + 1,
                .leaves = leaves});
  }

  size_t make(int64_t at) {
    const TreeNode& node = trees_.nodes[static_cast<size_t>(at)];
    if (node.mode == TreeMode::kLeaf) return add({.leaf = at});
    const size_t yes = of(node.on_true), no = of(node.on_false);
    // No number is below, at or above a split that is none.
    const uint64_t split = std::isnan(node.split) ? key(-kInfinity) - 1 : key(node.split);
    const bool missing = node.missing_is_true;
    switch (node.mode) {
      case TreeMode::kLeq: return test(node, split, yes, no, missing);
      case TreeMode::kLt: return test(node, split - 1, yes, no, missing);
      case TreeMode::kGt:
        if (std::isnan(node.split)) return test(node, split, yes, no, missing);
        return test(node, split, no, yes, !missing);
      case TreeMode::kGte:
        if (std::isnan(node.split)) return test(node, split, yes, no, missing);
        return test(node, split - 1, no, yes, !missing);
      case TreeMode::kNeq:
        return test(node, split, test(node, split - 1, yes, no, false), yes, false);
      default: return test(node, split, test(node, split - 1, no, yes, false), no, missing);
    }
  }

  const TreeEnsemble& trees_;
  DType type_;
  std::vector<Step> steps_;
  std::vector<size_t> made_;  // by node
};

class Packer {
 public:
  Packer(ExpandContext& c, const TreeEnsemble& trees, DType type, int64_t features, double neutral)
      : c_(c),
        trees_(trees),
        type_(type),
        features_(features),
        neutral_(neutral),
        steps_(trees, type) {}

  Result<PackedTrees> run() {
    for (const int64_t root : trees_.roots) (void)steps_.of(root);
    choose_data();
    list_weights();
    for (const int64_t root : trees_.roots) add_root(steps_.of(root));
    HONE_RETURN_IF_ERROR(allocate());
    for (const auto& [depth, roots] : complete_) add_complete(depth, roots);
    if (!others_.empty()) {
      made_.groups.push_back({TreeGroup::kByChildren, std::ssize(others_), node_, leaf_});
      for (const size_t root : others_) add_by_children(root);
    }
    return std::move(made_);
  }

 private:
  static bool is_leaf(const Step& step) { return step.leaf >= 0; }

  void add_root(size_t root) {
    const Step& step = steps_[root];
    const bool fits = step.depth <= kDeepest && fits_complete(int64_t{1} << step.depth, step);
    if (fits) {
      complete_[step.depth].push_back(root);
    } else {
      others_.push_back(root);
    }
    made_.steps += static_cast<double>(fits ? step.depth : step.depth / 2 + 1);
  }

  // A leaf that is added takes as much memory as any other.
  [[nodiscard]] bool fits_complete(int64_t ends, const Step& step) const {
    const int64_t added = ends - step.leaves;
    return ends * width() <= kFewLeaves || added * width() <= kPadding * step.leaves;
  }

  // The numbers of a leaf.
  [[nodiscard]] int64_t width() const { return one_target_ ? 1 : trees_.targets; }

  void choose_data() {
    bool left = false, right = false;
    for (const Step& step : steps_.all()) {
      if (is_leaf(step)) continue;
      left |= step.nan_left;
      right |= !step.nan_left;
    }
    using Data = PackedTrees::Data;
    made_.data = left && right ? Data::kBoth : left ? Data::kCopy : Data::kPlain;
  }

  // The weights of each node, and whether each tree has one target.
  void list_weights() {
    weights_.resize(trees_.nodes.size());
    for (const LeafWeight& weight : trees_.weights)
      weights_[static_cast<size_t>(weight.node)].push_back(&weight);
    targets_.assign(steps_.all().size(), kNoTarget);
    for (size_t i = 0; i < targets_.size(); ++i) {
      const Step& step = steps_[i];
      int64_t& target = targets_[i];
      if (!is_leaf(step)) {
        target = joined(targets_[step.left], targets_[step.right]);
        continue;
      }
      for (const LeafWeight* weight : weights_[static_cast<size_t>(step.leaf)])
        target = joined(target, weight->target);
    }
    for (const int64_t root : trees_.roots) one_target_ &= targets_[steps_.of(root)] != kSeveral;
  }

  static int64_t joined(int64_t a, int64_t b) {
    if (a == kNoTarget || a == b) return b;
    return b == kNoTarget ? a : kSeveral;
  }

  Status allocate() {
    int64_t nodes = 0, leaves = 0;
    for (const auto& [depth, roots] : complete_) {
      nodes += std::ssize(roots) << depth;
      leaves += std::ssize(roots) << depth;
    }
    std::vector<bool> seen(steps_.all().size());
    std::map<size_t, std::pair<int64_t, int64_t>> parts;  // of trees that are named again
    for (size_t i = 0; i < others_.size() && nodes <= kMostRows; ++i) {
      const auto [found, is_new] = parts.try_emplace(others_[i]);
      if (is_new) found->second = parts_of(others_[i], seen);
      const auto [tests, ends] = found->second;
      nodes += kRecord * (1 + 2 * tests);
      leaves += ends;
    }
    if (nodes > kMostRows)
      return c_.unsupported("trees that need {} rows of nodes or more, expected at most {}", nodes,
                            kMostRows);
    HONE_ASSIGN_OR_RETURN(made_.nodes, c_.new_constant(tree_key_type(type_), {nodes, 2}));
    HONE_ASSIGN_OR_RETURN(made_.leaves, c_.new_constant(trees_.type, {leaves, width()}));
    HONE_ASSIGN_OR_RETURN(made_.trees, c_.new_constant(DType::kI32, {std::ssize(trees_.roots), 3}));
    return ok_status();
  }

  // Returns how many tests and leaves a tree has, of shared ones one; `seen` is all false.
  std::pair<int64_t, int64_t> parts_of(size_t root, std::vector<bool>& seen) const {
    std::vector<size_t> list = {root};
    int64_t leaves = 0;
    seen[root] = true;
    for (size_t i = 0; i < list.size(); ++i) {
      const Step& step = steps_[list[i]];
      leaves += is_leaf(step) ? 1 : 0;
      if (is_leaf(step)) continue;
      for (const size_t child : {step.left, step.right}) {
        if (!seen[child]) list.push_back(child);
        seen[child] = true;
      }
    }
    for (const size_t at : list) seen[at] = false;
    return {std::ssize(list) - leaves, leaves};
  }

  void set_word(int64_t row, int64_t column, uint64_t value) {
    const auto at = static_cast<size_t>(2 * row + column);
    if (type_ == DType::kF64) {
      made_.nodes.as<uint64_t>()[at] = value;
    } else {
      made_.nodes.as<uint32_t>()[at] = static_cast<uint32_t>(value);
    }
  }

  void set_test(int64_t row, int64_t feature, uint64_t split) {
    set_word(row, 0, static_cast<uint64_t>(feature));
    set_word(row, 1, split);
  }

  // In the data that has both forms, NaN is -infinity behind the others.
  void set_test(int64_t row, const Step& step) {
    const bool behind = made_.data == PackedTrees::Data::kBoth && step.nan_left;
    set_test(row, step.feature + (behind ? features_ : 0), step.split);
  }

  void set_tree(size_t root, int64_t row, int64_t turns) {
    const int64_t values[] = {row, turns, std::max<int64_t>(targets_[root], 0)};
    for (const int64_t value : values)
      made_.trees.as<int32_t>()[next_tree_++] = static_cast<int32_t>(value);
  }

  void set_leaf(int64_t row, int64_t node) {
    const int64_t width = made_.leaves.shape()[1];
    for (int64_t i = 0; i < width; ++i) made_.leaves.set(row * width + i, neutral_);
    // Of several weights of one target, sums take all, and extremes the last.
    const bool sums = trees_.aggregate == "SUM" || trees_.aggregate == "AVERAGE";
    for (const LeafWeight* weight : weights_[static_cast<size_t>(node)]) {
      const int64_t at = row * width + (one_target_ ? 0 : weight->target);
      made_.leaves.set(at, sums ? made_.leaves.at(at) + weight->value : weight->value);
    }
  }

  void add_complete(int64_t depth, const std::vector<size_t>& roots) {
    made_.groups.push_back({depth, std::ssize(roots), node_, leaf_});
    for (const size_t root : roots) {
      set_test(node_, 0, kNever);  // node 0, which is none
      place(root, 1, depth);
      set_tree(root, 0, 0);
      node_ += int64_t{1} << depth;
      leaf_ += int64_t{1} << depth;
    }
  }

  // Below a leaf that is not at the bottom is the same leaf.
  void place(size_t at, int64_t node, int64_t levels) {
    const Step& step = steps_[at];
    if (levels == 0) {
      const int64_t first = std::bit_floor(static_cast<uint64_t>(node));
      return set_leaf(leaf_ + node - first, step.leaf);
    }
    if (is_leaf(step)) {
      set_test(node_ + node, 0, kNever);
      place(at, 2 * node, levels - 1);
      return place(at, 2 * node + 1, levels - 1);
    }
    set_test(node_ + node, step);
    place(step.left, 2 * node, levels - 1);
    place(step.right, 2 * node + 1, levels - 1);
  }

  // Level by level: of children that are named twice there are two records, whose children are
  // one pair.
  void add_by_children(size_t root) {
    const int64_t turns = (steps_[root].depth + kTurnSteps - 1) / kTurnSteps;
    set_tree(root, node_, turns);
    std::vector<std::pair<size_t, int64_t>> records = {{root, node_}};  // with their rows
    node_ += kRecord;
    std::map<size_t, int64_t> known;  // rows of a test's children, and of a leaf's values
    for (size_t i = 0; i < records.size(); ++i) {
      const auto [at, row] = records[i];
      const Step& step = steps_[at];
      const auto [found, is_new] = known.try_emplace(at, is_leaf(step) ? leaf_ : node_);
      if (is_leaf(step)) {
        if (is_new) set_leaf(leaf_++, step.leaf);
        set_test(row, 0, kNever);
        set_word(row + 1, 0, static_cast<uint64_t>(row - kRecord));
        set_word(row + 1, 1, static_cast<uint64_t>(found->second));
        continue;
      }
      set_test(row, step);
      set_word(row + 1, 0, static_cast<uint64_t>(found->second));
      if (!is_new) continue;
      for (const size_t child : {step.left, step.right}) {
        records.emplace_back(child, node_);
        node_ += kRecord;
      }
    }
  }

  static constexpr int64_t kNoTarget = -1, kSeveral = -2;
  ExpandContext& c_;
  const TreeEnsemble& trees_;
  DType type_;
  int64_t features_;
  double neutral_;
  Steps steps_;
  std::map<int64_t, std::vector<size_t>> complete_;  // roots by depth
  std::vector<size_t> others_;
  std::vector<std::vector<const LeafWeight*>> weights_;  // by node
  std::vector<int64_t> targets_;                         // by step
  bool one_target_ = true;
  int64_t node_ = 0, leaf_ = 0;  // rows that are next
  size_t next_tree_ = 0;
  PackedTrees made_;
};

}  // namespace

uint64_t tree_key(DType type, double x) {
  if (type == DType::kF64) {
    const auto bits = std::bit_cast<int64_t>(x);
    const uint64_t size = static_cast<uint64_t>(bits) & INT64_MAX, zero = uint64_t{1} << 63;
    return bits < 0 ? zero - size : zero + size;
  }
  const auto bits = std::bit_cast<int32_t>(static_cast<float>(x));
  const uint32_t size = static_cast<uint32_t>(bits) & INT32_MAX, zero = uint32_t{1} << 31;
  return bits < 0 ? zero - size : zero + size;
}

Result<PackedTrees> pack_trees(ExpandContext& c, const TreeEnsemble& trees, DType data,
                               int64_t features, double neutral) {
  return Packer(c, trees, data, features, neutral).run();
}

}  // namespace hone::graph
