// hone.TreeWalk: what the trees of a packed ensemble (ops/ml_tree_pack.h) add to the scores of
// rows.
//
// Operands: data [rows, features], nodes, leaves, trees. Result: [parts, rows, targets], to which
// each part of the trees adds by itself. Many rows go through a tree before the next one, kAbreast
// of them at a time; a few rows go one after the other, through kAbreast trees at a time. Steps of
// different rows or trees wait for memory together, and no branch depends on the data.
#include "hone/graph/ops/ml_tree_walk.h"

#include "hone/graph/ops/indices.h"
#include "hone/graph/ops/ml.h"

namespace hone::graph {
namespace {

using ir::Expr;
using ir::Stmt;

constexpr int64_t kAbreast = 8;

Expr number(int64_t value) { return ir::constant(value); }

std::vector<Local> locals(const char* name) {
  std::vector<Local> list;
  for (int64_t k = 0; k < kAbreast; ++k)
    list.emplace_back(fmt::format("{}{}", name, k).c_str(), DType::kI64);
  return list;
}

Status infer_tree_walk(InferContext& c) {
  return c.set(
      0, c.dtype(2),
      {c.attributes().integer("parts", 1), c.shape(0)[0], c.attributes().integer("targets", 1)});
}

class Walk {
 public:
  explicit Walk(EmitContext& c)
      : c_(c),
        rows_(c.result().shape[1]),
        block_(c.node().attributes.integer("block", kAbreast)),
        parts_(c.result().shape[0]),
        targets_(c.result().shape[2]),
        width_(c.input(2).shape[1]),
        features_(c.input(0).shape[1]),
        aggregate_(c.node().attributes.text("aggregate", "SUM")),
        at_(locals("at")),
        next_("next", DType::kI64),
        moved_("moved", DType::kI64) {
    if (c.node().attributes.integer("ahead", 0) != 0)
      keys_ = ir::make_buffer("keys", tree_key_type(c.input(0).dtype), {block_, features_},
                              ir::Scope::kThread);
    const auto numbers = c.node().attributes.integers("groups");
    for (size_t i = 0; i + 4 <= numbers.size(); i += 4)
      groups_.push_back({numbers[i], numbers[i + 1], numbers[i + 2], numbers[i + 3]});
  }

  void emit() {
    const int64_t blocks = (rows_ + block_ - 1) / block_;
    c_.body("trees", {compute::make_axis("part", parts_), compute::make_axis("rows", blocks)},
            [&](const std::vector<Expr>& point) {
              part_ = point[0];
              std::vector<Local> used = at_;
              used.push_back(next_);
              used.push_back(moved_);
              first_ = point[1] * block_;
              Stmt all = with_locals(used, block());
              return std::vector{keys_ ? ir::make_alloc(keys_, {std::move(all)}) : all};
            });
  }

 private:
  // The rows of the block that this walk follows through trees, and these trees: one of both, and
  // kAbreast of the other, or one.
  struct Together {
    Expr row, tree;  // the first
    int64_t rows = 1, trees = 1;
    [[nodiscard]] int64_t count() const { return rows * trees; }
    [[nodiscard]] Expr row_of(int64_t k) const { return rows == 1 ? row : row + k; }
    [[nodiscard]] Expr tree_of(int64_t k) const { return trees == 1 ? tree : tree + k; }
  };

  std::vector<Stmt> block() {
    const Expr count =
        rows_ % block_ == 0 ? number(block_) : ir::min(number(block_), number(rows_) - first_);
    std::vector<Stmt> steps = {count_to("row", count, [&](const Expr& row) {
      std::vector<Stmt> begin = {vectors_to("target", number(targets_), [&](const Expr& target) {
        return std::vector{c_.store(0, {part_, first_ + row, target}, neutral())};
      })};
      if (keys_)
        begin.push_back(vectors_to("feature", number(features_), [&](const Expr& feature) {
          return std::vector{ir::make_store(keys_, {row, feature}, key(row, feature))};
        }));
      return begin;
    })};
    int64_t tree = 0;
    for (const TreeGroup& group : groups_) {
      for (Stmt& step : through(group, tree, count)) steps.push_back(std::move(step));
      tree += group.trees;
    }
    return steps;
  }

  Expr neutral() const {
    const DType type = c_.result().dtype;
    if (aggregate_ == "MIN") return highest(type);
    return aggregate_ == "MAX" ? lowest(type) : literal(type, 0);
  }

  // The trees of a group that this part has, for rows of the block.
  std::vector<Stmt> through(const TreeGroup& group, int64_t first_tree, const Expr& rows) {
    const Expr begin = ir::floordiv(part_ * group.trees, parts_);
    const Expr trees = ir::floordiv((part_ + 1) * group.trees, parts_) - begin;
    const Expr tree = begin + first_tree;
    std::vector<Stmt> steps;
    if (rows_ >= kAbreast && block_ >= kAbreast) {
      steps.push_back(count_to("tree", trees, [&](const Expr& t) {
        return std::vector{count_to("abreast", ir::floordiv(rows, kAbreast), [&](const Expr& r) {
          return walk(group, first_tree, {.row = r * kAbreast, .tree = tree + t, .rows = kAbreast});
        })};
      }));
      if (rows_ % kAbreast == 0) return steps;
    }
    const Expr done = block_ >= kAbreast ? ir::floordiv(rows, kAbreast) * kAbreast : number(0);
    steps.push_back(count_to("row", rows - done, [&](const Expr& r) {
      const Expr row = done + r;
      const Expr rest = ir::floordiv(trees, kAbreast) * kAbreast;
      return std::vector{
          count_to("abreast", ir::floordiv(trees, kAbreast),
                   [&](const Expr& t) {
                     return walk(group, first_tree,
                                 {.row = row, .tree = tree + t * kAbreast, .trees = kAbreast});
                   }),
          count_to("tree", trees - rest, [&](const Expr& t) {
            return walk(group, first_tree, {.row = row, .tree = tree + rest + t});
          })};
    }));
    return steps;
  }

  std::vector<Stmt> walk(const TreeGroup& group, int64_t first_tree, const Together& all) {
    std::vector<Stmt> steps;
    std::vector<Expr> leaves;
    if (group.depth == TreeGroup::kByChildren) {
      steps = by_children(all);
      for (int64_t k = 0; k < all.count(); ++k) leaves.push_back(word(at(k) + 1, 1));
    } else {
      steps = complete(group, first_tree, all);
      const int64_t most = int64_t{1} << group.depth;
      for (int64_t k = 0; k < all.count(); ++k)
        leaves.push_back((all.tree_of(k) + (-first_tree)) * most + at(k) + (group.leaf - most));
    }
    for (Stmt& step : add(leaves, all)) steps.push_back(std::move(step));
    return steps;
  }

  std::vector<Stmt> complete(const TreeGroup& group, int64_t first_tree, const Together& all) {
    std::vector<Stmt> steps;
    const int64_t nodes = int64_t{1} << group.depth;
    for (int64_t k = 0; k < all.count(); ++k) steps.push_back(local(k).set(number(1)));
    for (int64_t level = 0; level < group.depth; ++level) {
      for (int64_t k = 0; k < all.count(); ++k) {
        const Expr row = (all.tree_of(k) + (-first_tree)) * nodes + group.node + at(k);
        steps.push_back(local(k).set(at(k) * 2 + goes_right(row, all.row_of(k))));
      }
    }
    return steps;
  }

  // Ends once no walk moves any more, or where the deepest leaf is.
  std::vector<Stmt> by_children(const Together& all) {
    std::vector<Stmt> steps = {moved_.set(number(1))};
    Expr turns = number(0);
    for (int64_t k = 0; k < all.count(); ++k) {
      if (k == 0 || all.trees > 1) turns = ir::max(turns, tree_entry(all.tree_of(k), 1));
      steps.push_back(local(k).set(tree_entry(all.tree_of(k), 0)));
    }
    const Expr moves = ir::make(ir::Op::kNe, {moved_.get(), number(0)});
    steps.push_back(count_to(
        "turn", turns, [&](const Expr&) { return std::vector{ir::make_if(moves, turn(all))}; }));
    return steps;
  }

  std::vector<Stmt> turn(const Together& all) {
    std::vector<Stmt> steps = {moved_.set(number(0))};
    for (int64_t level = 0; level < kTurnSteps; ++level) {
      for (int64_t k = 0; k < all.count(); ++k) {
        const Expr child = word(at(k) + 1, 0) + goes_right(at(k), all.row_of(k)) * 2;
        if (level + 1 < kTurnSteps) {
          steps.push_back(local(k).set(child));
          continue;
        }
        steps.push_back(next_.set(child));
        const Expr changed = ir::make(ir::Op::kBitXor, {next_.get(), at(k)});
        steps.push_back(moved_.set(ir::make(ir::Op::kBitOr, {moved_.get(), changed})));
        steps.push_back(local(k).set(next_.get()));
      }
    }
    return steps;
  }

  // 1 unless the key of the row's feature is at most the node's split.
  Expr goes_right(const Expr& node, const Expr& row) {
    const Expr feature = word(node, 0);
    const Expr x = keys_ ? ir::load(keys_, {row, feature}) : key(row, feature);
    return ir::cast(DType::kI64, ir::less(c_.read(1, "nodes", {node, number(1)}), x));
  }

  // The key of a number (tree_key), by its bits.
  Expr key(const Expr& row, const Expr& feature) {
    const Expr x = c_.read(0, "data", {first_ + row, feature});
    const bool wide = x->type == DType::kF64;
    const DType type = wide ? DType::kI64 : DType::kI32;
    const auto word = [&](int64_t value) { return ir::constant_int(value, type); };
    const int64_t most = wide ? INT64_MAX : INT32_MAX;
    const int64_t infinity = wide ? int64_t{0x7FF} << 52 : int64_t{0xFF} << 23;
    const Expr bits = ir::bit_cast(type, x);
    const Expr size = ir::make(ir::Op::kBitAnd, {bits, word(most)});
    const Expr with_sign = ir::select(ir::less(bits, word(0)), word(0) - size, size);
    const Expr rising = ir::select(ir::less(word(infinity), size), word(most), with_sign);
    return ir::bit_cast(tree_key_type(x->type),
                        ir::make(ir::Op::kBitXor, {rising, word(-most - 1)}));
  }

  Expr word(const Expr& row, int64_t column) {
    return ir::cast(DType::kI64, c_.read(1, "nodes", {row, number(column)}));
  }
  Expr tree_entry(const Expr& tree, int64_t column) {
    return ir::cast(DType::kI64, c_.read(3, "trees", {tree, number(column)}));
  }

  // Adds leaves to the scores: those of several trees to a single target as a sum by pairs.
  std::vector<Stmt> add(const std::vector<Expr>& leaves, const Together& all) {
    std::vector<Stmt> steps;
    if (width_ == 1 && targets_ == 1 && all.rows == 1) {
      std::vector<Expr> terms;
      for (const Expr& leaf : leaves) terms.push_back(c_.read(2, "leaves", {leaf, number(0)}));
      for (; terms.size() > 1; terms.resize(terms.size() / 2)) {
        for (size_t i = 0; i < terms.size() / 2; ++i)
          terms[i] = joined(terms[2 * i], terms[2 * i + 1]);
      }
      return {add_to(all.row, number(0), terms[0])};
    }
    for (int64_t k = 0; k < all.count(); ++k) {
      const Expr& leaf = leaves[static_cast<size_t>(k)];
      if (width_ == 1) {
        const Expr target = targets_ == 1 ? number(0) : tree_entry(all.tree_of(k), 2);
        steps.push_back(add_to(all.row_of(k), target, c_.read(2, "leaves", {leaf, number(0)})));
      } else {
        steps.push_back(next_.set(leaf));
        steps.push_back(vectors_to("target", number(targets_), [&](const Expr& target) {
          return std::vector{
              add_to(all.row_of(k), target, c_.read(2, "leaves", {next_.get(), target}))};
        }));
      }
    }
    return steps;
  }

  Stmt add_to(const Expr& row, const Expr& target, const Expr& value) {
    const std::vector<Expr> place = {part_, first_ + row, target};
    return c_.store(0, place, joined(c_.read_result(0, place), value));
  }

  Expr joined(const Expr& a, const Expr& b) const {
    if (aggregate_ == "MIN") return ir::min(a, b);
    return aggregate_ == "MAX" ? ir::max(a, b) : a + b;
  }

  const Local& local(int64_t k) const { return at_[static_cast<size_t>(k)]; }
  Expr at(int64_t k) const { return local(k).get(); }

  EmitContext& c_;
  int64_t rows_, block_, parts_, targets_, width_, features_;
  std::string aggregate_;
  std::vector<TreeGroup> groups_;
  std::vector<Local> at_;  // where each walk is
  Local next_, moved_;
  ir::BufferPtr keys_;  // of the block's data, if they are made ahead
  Expr part_, first_;   // of the point: the part of the trees, the block's first row
};

void emit_tree_walk(EmitContext& c) { Walk(c).emit(); }

}  // namespace

ValueId add_tree_walk(ExpandContext& c, ValueId data, const PackedTrees& trees, int64_t targets,
                      const std::string& aggregate) {
  constexpr double kStepsOfPart = 2000;  // about a microsecond
  constexpr int64_t kTiles = 16;
  constexpr int64_t kMostKeys = 1 << 16;  // of a block
  const int64_t given = c.shape_of(data)[0], features = c.shape_of(data)[1];
  const int64_t rows = c.attributes().integer("rows", given);
  int64_t block = kAbreast;
  while (block < 64 && rows >= block * kTiles && 2 * block * features <= kMostKeys) block *= 2;
  const bool ahead = block * features <= kMostKeys && static_cast<double>(features) <= trees.steps;
  const int64_t blocks = (rows + block - 1) / block;
  const auto by_work = static_cast<int64_t>(trees.steps * static_cast<double>(rows) / kStepsOfPart);
  const int64_t parts = std::clamp<int64_t>(std::min(by_work, kTiles / blocks), 1, kTiles);
  std::vector<int64_t> groups;
  for (const TreeGroup& group : trees.groups)
    groups.insert(groups.end(), {group.depth, group.trees, group.node, group.leaf});
  const ValueId y =
      c.add("hone.TreeWalk",
            {data, c.constant(trees.nodes), c.constant(trees.leaves), c.constant(trees.trees)},
            {{"aggregate", aggregate},
             {"ahead", int64_t{ahead}},
             {"block", block},
             {"groups", groups},
             {"parts", parts},
             {"targets", targets}});
  if (parts == 1) return c.reshape(y, {given, targets});
  const char* join = aggregate == "MIN"   ? "ReduceMin"
                     : aggregate == "MAX" ? "ReduceMax"
                                          : "ReduceSum";
  return c.reduce(join, y, {0}, false);
}

std::span<const Op> ml_tree_walk_ops() {
  static const Op ops[] = {{.name = "hone.TreeWalk",
                            .min_inputs = 4,
                            .max_inputs = 4,
                            .attributes = "aggregate:s ahead:i block:i groups:is parts:i targets:i",
                            .infer = infer_tree_walk,
                            .emit = emit_tree_walk}};
  return ops;
}

}  // namespace hone::graph
