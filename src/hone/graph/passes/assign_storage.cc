#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_set>

#include "hone/graph/emit.h"
#include "hone/graph/op.h"
#include "hone/graph/ops/movement.h"
#include "hone/graph/ops/registry.h"
#include "hone/graph/passes/pass.h"

namespace hone::graph {
namespace {

bool is_transpose(const Node& node) { return node.type == "Transpose"; }
bool is_window(const Node& node) { return node.type == "hone.Window"; }
bool computes(const Node& node) { return node.op->kind != Kind::kView; }

// Returns the places of the operands of a Concat or hone.Interleave in its result.
std::vector<PartPlace> parts_of(const Graph& graph, const Node& node) {
  if (node.type == "hone.Interleave") return interleaved_parts(node);
  const size_t rank = graph.value(node.outputs[0]).shape.size();
  const auto axis = static_cast<size_t>(
      *normalize_axis(node.attributes.integer("axis", 0), static_cast<int64_t>(rank)));
  std::vector<PartPlace> parts;
  int64_t start = 0;
  for (const ValueId in : node.inputs) {
    parts.push_back({Shape(rank, 0), Shape(rank, 1)});
    parts.back().start[axis] = start;
    start += graph.value(in).shape[axis];
  }
  return parts;
}

struct Border {
  Shape low, high;
  [[nodiscard]] bool any() const { return Padding{low, high}.any(); }
  void join(const Border& other) {
    for (size_t d = 0; d < low.size(); ++d) {
      low[d] = std::max(low[d], other.low[d]);
      high[d] = std::max(high[d], other.high[d]);
    }
  }
};

// Returns the border that a reader wants around its operand 0, if zeros are right there.
std::optional<Border> wanted_border(const Graph& graph, const Node& node,
                                    const std::vector<bool>& non_negative) {
  if (node.op->padding == nullptr) return std::nullopt;
  const Padding padding = node.op->padding(graph, node);
  const bool zeros_serve =
      padding.fill == Padding::Fill::kZero || non_negative[static_cast<size_t>(node.inputs[0])];
  if (!zeros_serve || !padding.any()) return std::nullopt;
  return Border{padding.low, padding.high};
}

class Assigner {
 public:
  explicit Assigner(Graph& graph) : graph_(graph) {}

  void run() {
    make_windows();
    copy_for_borders();
    copy_outputs();
    claim_parts();
    const Uses uses(graph_);
    collect_borders(uses);
    spread_borders(uses);
    bind_outputs();
    int input = 0;
    for (const ValueId id : graph_.inputs) {
      // The runtime computes the sizes, so that they are no input of the model's caller. The body
      // of a loop gets them as an operand.
      const bool own = id == graph_.varying.sizes && !graph_.varying.symbols.empty();
      place(id, own ? Buffer::Kind::kArena : Buffer::Kind::kInput, own ? 0 : input++);
    }
    for (const Node& node : graph_.nodes) {
      for (const ValueId out : node.outputs) {
        if (out != kNoValue) store(uses, out);
      }
    }
  }

 private:
  struct Claim {
    ValueId whole;
    PartPlace part;
  };

  // A slice without steps is read where its operand lies, unless its elements must be side by side
  // or in a place of their own.
  void make_windows() {
    const Uses uses(graph_);
    for (Node& node : graph_.nodes) {
      if (node.type != "Slice") continue;
      const Value& whole = graph_.value(node.inputs[0]);
      const ValueId part = node.outputs[0];
      if (whole.constant || whole.extents != kNoValue || whole.order != graph_.value(part).order ||
          num_elements(graph_.value(part).shape) == 0 || needs_own_place(uses, part))
        continue;
      const SliceRange range = slice_range(graph_, node);
      if (std::any_of(range.step.begin(), range.step.end(), [](int64_t s) { return s != 1; }))
        continue;
      ++graph_.rules["window"];
      node.type = "hone.Window";
      node.op = window_op();
      node.opset = kMaxOpset;
      node.inputs.resize(1);
      node.attributes = {};
      node.attributes.set("starts", range.start);
    }
  }

  // Returns whether the value, or a view of it, is an output, a part of a concatenation, has
  // another shape, or is the right operand of a product. A product reads the rows of that operand
  // repeatedly, which is up to 17 % slower if they are far apart (queries, keys and values of 512 x
  // 512 in one value).
  bool needs_own_place(const Uses& uses, ValueId id) const {
    if (uses.output[static_cast<size_t>(id)]) return true;
    for (const int reader : uses.readers[static_cast<size_t>(id)]) {
      const Node& node = graph_.nodes[static_cast<size_t>(reader)];
      if (is_reshape(node) || joins_parts(node)) return true;
      for (size_t k = 0; k < node.inputs.size(); ++k) {
        if (node.inputs[k] == id && is_right_operand(node, k)) return true;
      }
      if (is_transpose(node) && needs_own_place(uses, node.outputs[0])) return true;
    }
    return false;
  }

  // Values that cannot have a border themselves (inputs, constants, views; what is viewed in
  // another shape or returned to the caller) get a copy for the readers that want one.
  void copy_for_borders() {
    const Uses uses(graph_);
    const std::vector<bool> non_negative = non_negative_values(graph_);
    std::map<ValueId, ValueId> copies;
    CopyInserter inserter(graph_);
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const auto border = wanted_border(graph_, graph_.nodes[i], non_negative);
      if (!border) continue;
      const ValueId data = graph_.nodes[i].inputs[0];
      if (can_have_border(uses, data)) continue;
      const auto known = copies.find(data);
      if (known != copies.end()) {
        graph_.nodes[i].inputs[0] = known->second;
        continue;
      }
      graph_.nodes[i].inputs[0] = copies[data] = inserter.add(data, i, ".bordered");
      ++graph_.rules["bordered"];
    }
    inserter.insert();
  }

  bool can_have_border(const Uses& uses, ValueId id) const {
    for (;;) {
      const int producer = uses.producer[static_cast<size_t>(id)];
      if (producer < 0 || uses.output[static_cast<size_t>(id)]) return false;
      const Node& node = graph_.nodes[static_cast<size_t>(producer)];
      if (!is_window(node)) {
        return (computes(node) || joins_parts(node)) && !viewed_densely(uses, id);
      }
      id = node.inputs[0];
    }
  }

  // The compute node's (or concatenation's) value that a value is a view of.
  ValueId base(const Uses& uses, ValueId id) const {
    for (;;) {
      const int producer = uses.producer[static_cast<size_t>(id)];
      if (producer < 0) return id;
      const Node& node = graph_.nodes[static_cast<size_t>(producer)];
      if (computes(node) || joins_parts(node)) return id;
      id = node.inputs[0];
    }
  }

  // Every output must be the only owner of its buffer, which the caller gives.
  void copy_outputs() {
    const Uses uses(graph_);
    CopyInserter inserter(graph_);
    for (ValueId& output : graph_.outputs) {
      ValueId root = base(uses, output);
      const bool made = uses.producer[static_cast<size_t>(root)] >= 0;
      if (!made || is_output_base_.contains(root)) {
        output = root = inserter.add(output, graph_.nodes.size(), ".output");
        ++graph_.rules["output"];
      }
      output_bases_.push_back(root);
      is_output_base_.insert(root);
    }
    inserter.insert();
  }

  // Each part of a joined value is written straight to its place, or copied there.
  void claim_parts() {
    const Uses uses(graph_);
    CopyInserter inserter(graph_);
    for (size_t i = graph_.nodes.size(); i-- > 0;) {
      if (!joins_parts(graph_.nodes[i])) continue;
      const ValueId whole = graph_.nodes[i].outputs[0];
      const std::vector<PartPlace> parts = parts_of(graph_, graph_.nodes[i]);
      for (size_t k = 0; k < graph_.nodes[i].inputs.size(); ++k) {
        ValueId part = graph_.nodes[i].inputs[k];
        if (!can_be_window(uses, part, whole)) {
          part = inserter.add(part, i, ".part");
          ++graph_.rules["part"];
          graph_.value(part).order = order_of(graph_.value(whole));
          graph_.nodes[i].inputs[k] = part;
        }
        claims_[part] = {whole, parts[k]};
        ++graph_.rules["joined"];
      }
    }
    inserter.insert();
  }

  bool can_be_window(const Uses& uses, ValueId part, ValueId whole) const {
    if (claims_.count(part) != 0 || graph_.value(part).order != graph_.value(whole).order)
      return false;
    if (is_output_base_.contains(part)) return false;
    const Node* node = maker(uses, part);
    return node != nullptr && (computes(*node) || joins_parts(*node)) &&
           !viewed_densely(uses, part);
  }

  // Returns whether the value is viewed in another shape, directly or through transposes, and must
  // therefore be dense.
  bool viewed_densely(const Uses& uses, ValueId id) const {
    for (const int reader : uses.readers[static_cast<size_t>(id)]) {
      const Node& node = graph_.nodes[static_cast<size_t>(reader)];
      if (node.inputs[0] != id) continue;
      if (is_reshape(node) || (is_transpose(node) && viewed_densely(uses, node.outputs[0])))
        return true;
    }
    return false;
  }

  // The border of each buffer's owner: what its readers and those of its windows want.
  void collect_borders(const Uses& uses) {
    const std::vector<bool> non_negative = non_negative_values(graph_);
    for (const Node& node : graph_.nodes) {
      auto border = wanted_border(graph_, node, non_negative);
      if (!border) continue;
      const ValueId id = bordered_whole(uses, node.inputs[0], *border);
      if (viewed_densely(uses, id)) continue;  // its readers check bounds instead
      ++graph_.rules["border"];
      const auto [it, fresh] = borders_.emplace(id, *border);
      if (!fresh) it->second.join(*border);
    }
  }

  // The value of which this one is a part, itself or through others, or a window; there is no
  // border along dimensions of which it is not all.
  ValueId bordered_whole(const Uses& uses, ValueId id, Border& border) const {
    for (;;) {
      const Shape& part = graph_.value(id).shape;
      const Node* window = maker(uses, id);
      if (const auto claim = claims_.find(id); claim != claims_.end()) {
        id = claim->second.whole;
      } else if (window != nullptr && is_window(*window)) {
        id = window->inputs[0];
      } else {
        return id;
      }
      for (size_t d = 0; d < part.size(); ++d) {
        if (part[d] != graph_.value(id).shape[d]) border.low[d] = border.high[d] = 0;
      }
    }
  }

  const Node* maker(const Uses& uses, ValueId id) const {
    const int producer = uses.producer[static_cast<size_t>(id)];
    return producer < 0 ? nullptr : &graph_.nodes[static_cast<size_t>(producer)];
  }

  // Values that meet in an elementwise operator get one border, so that all blocks of a residual
  // network have the same tasks.
  void spread_borders(const Uses& uses) {
    std::vector<bool> owner(graph_.values.size(), false);
    for (const Node& node : graph_.nodes) {
      if (!computes(node) && !joins_parts(node)) continue;
      const ValueId id = node.outputs[0];
      owner[static_cast<size_t>(id)] =
          claims_.count(id) == 0 && !viewed_densely(uses, id) && !is_output_base_.contains(id);
    }
    // Values that meet, directly or by others, are one set.
    std::vector<ValueId> parent(graph_.values.size());
    std::iota(parent.begin(), parent.end(), 0);
    const auto root = [&](ValueId id) {
      while (parent[static_cast<size_t>(id)] != id) {
        ValueId& above = parent[static_cast<size_t>(id)];
        id = above = parent[static_cast<size_t>(above)];
      }
      return id;
    };
    for (const Node& node : graph_.nodes) {
      if (node.op->kind != Kind::kElementwise) continue;
      std::vector<ValueId> meeting = node.inputs;
      meeting.push_back(node.outputs[0]);
      const Shape& shape = graph_.value(node.outputs[0]).shape;
      std::erase_if(meeting, [&](ValueId id) {
        return id == kNoValue || !owner[static_cast<size_t>(id)] || graph_.value(id).shape != shape;
      });
      for (const ValueId id : meeting) parent[static_cast<size_t>(root(id))] = root(meeting[0]);
    }
    std::map<ValueId, Border> joined;  // by root
    for (const auto& [id, border] : borders_) {
      const auto [it, fresh] = joined.emplace(root(id), border);
      if (!fresh) it->second.join(border);
    }
    for (size_t i = 0; i < parent.size(); ++i) {
      const auto id = static_cast<ValueId>(i);
      if (const auto it = joined.find(root(id)); it != joined.end()) borders_[id] = it->second;
    }
  }

  void bind_outputs() {
    for (size_t i = 0; i < output_bases_.size(); ++i) {
      place(output_bases_[i], Buffer::Kind::kOutput, static_cast<int>(i));
    }
  }

  // A buffer of its own for a value.
  void place(ValueId id, Buffer::Kind kind, int index) {
    Value& value = graph_.value(id);
    const size_t rank = value.shape.size();
    Border border{Shape(rank, 0), Shape(rank, 0)};
    const auto wanted = borders_.find(id);
    if (wanted != borders_.end() && kind == Buffer::Kind::kArena) border = wanted->second;
    Buffer buffer{.kind = kind, .index = index, .dtype = value.dtype};
    Storage storage;
    storage.order = order_of(value);
    buffer.border.assign(2 * rank, 0);
    for (size_t j = 0; j < rank; ++j) {
      const auto d = static_cast<size_t>(storage.order[j]);
      buffer.shape.push_back(border.low[d] + value.shape[d] + border.high[d]);
      buffer.border[j] = border.low[d];
      buffer.border[rank + j] = border.high[d];
      storage.offset.push_back(border.low[d]);
      storage.step.push_back(1);
    }
    storage.extent = buffer.shape;
    storage.border_low = border.low;
    storage.border_high = border.high;
    storage.buffer = static_cast<int>(graph_.buffers.size());
    value.storage = std::move(storage);
    graph_.buffers.push_back(std::move(buffer));
  }

  // From the storage of the whole to that of a part; no border where it is not all.
  static void narrow(Storage& storage, const PartPlace& part, const Shape& shape,
                     const Shape& whole) {
    for (size_t j = 0; j < storage.order.size(); ++j) {
      const auto d = static_cast<size_t>(storage.order[j]);
      storage.offset[j] += part.start[d] * storage.step[j];
      storage.step[j] *= part.step[d];
      if (shape[d] != whole[d]) storage.border_low[d] = storage.border_high[d] = 0;
    }
  }

  // The value in whose place another one lies, whole or a part; kNoValue: it has its own buffer.
  ValueId lies_in(const Uses& uses, ValueId id) const {
    if (const auto claim = claims_.find(id); claim != claims_.end()) return claim->second.whole;
    const Node* view = maker(uses, id);
    const bool own = view == nullptr || computes(*view) || joins_parts(*view) ||
                     graph_.value(view->inputs[0]).constant;
    return own ? kNoValue : view->inputs[0];
  }

  // A place for a value, after one for that in which it lies. Views of views may be many.
  void store(const Uses& uses, ValueId id) {
    std::vector<ValueId> open;
    for (; id != kNoValue && graph_.value(id).storage.buffer < 0; id = lies_in(uses, id))
      open.push_back(id);
    for (size_t i = open.size(); i-- > 0;) {
      const ValueId of = lies_in(uses, open[i]);
      if (of == kNoValue) {
        place(open[i], Buffer::Kind::kArena, 0);
      } else {
        graph_.value(open[i]).storage = part_of(uses, open[i], graph_.value(of).storage);
      }
    }
  }

  // The storage of a value that lies in another one's.
  Storage part_of(const Uses& uses, ValueId id, Storage same) const {
    const Value& value = graph_.value(id);
    if (const auto claim = claims_.find(id); claim != claims_.end()) {
      narrow(same, claim->second.part, value.shape, graph_.value(claim->second.whole).shape);
      return same;
    }
    const Node* view = maker(uses, id);
    if (is_window(*view)) {
      const PartPlace part{view->attributes.integers("starts"), Shape(value.shape.size(), 1)};
      narrow(same, part, value.shape, graph_.value(view->inputs[0]).shape);
    } else if (is_transpose(*view)) {
      const std::vector<int> from = same.order;
      const Storage old = same;
      same.order = value.order;
      for (size_t j = 0; j < from.size(); ++j) {
        const auto to = static_cast<size_t>(same.order[j]), was = static_cast<size_t>(from[j]);
        same.border_low[to] = old.border_low[was];
        same.border_high[to] = old.border_high[was];
      }
    } else {
      HONE_ASSERT(!graph_.buffers[static_cast<size_t>(same.buffer)].has_border(),
                  "a reshaped value has no border");
      same.order = order_of(value);
      same.extent = value.shape;
      same.offset.assign(value.shape.size(), 0);
      same.step.assign(value.shape.size(), 1);
      same.border_low = same.border_high = same.offset;
    }
    return same;
  }

  Graph& graph_;
  std::vector<ValueId> output_bases_;  // by output
  std::unordered_set<ValueId> is_output_base_;
  std::map<ValueId, Claim> claims_;
  std::map<ValueId, Border> borders_;
};

}  // namespace

Status assign_storage(Graph& graph) {
  Assigner(graph).run();
  return ok_status();
}

}  // namespace hone::graph
