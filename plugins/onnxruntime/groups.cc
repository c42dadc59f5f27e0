#include "groups.h"

#include <algorithm>
#include <optional>

#include "hone/dtype.h"

namespace hone::ort {
namespace {

bool is_array_type(int dtype) {
  switch (static_cast<DType>(dtype)) {
    case DType::kF32:
    case DType::kU8:
    case DType::kI8:
    case DType::kU16:
    case DType::kI16:
    case DType::kI32:
    case DType::kI64:
    case DType::kBool:
    case DType::kF16:
    case DType::kF64:
    case DType::kU32:
    case DType::kU64:
    case DType::kBF16: return true;
  }
  return false;
}

bool is_array(const Graph& graph, const std::string& name) {
  if (name.empty()) return true;
  const auto value = graph.values.find(name);
  return value != graph.values.end() && value->second.is_tensor && value->second.has_shape &&
         is_array_type(value->second.dtype);
}

// Returns for each node how often the paths to it change between usable nodes and others. A path
// between two nodes of one number has only nodes of that number.
std::vector<int> levels_of(const Graph& graph, const std::vector<bool>& usable) {
  std::map<std::string, size_t> producers;
  std::vector<int> levels(graph.nodes.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const GraphNode& node = graph.nodes[i];
    int level = usable[i] ? 0 : -1;
    for (const auto* names : {&node.inputs, &node.implicit}) {
      for (const std::string& name : *names) {
        const auto from = producers.find(name);
        if (from == producers.end()) continue;
        level = std::max(level, levels[from->second] + (usable[from->second] != usable[i] ? 1 : 0));
      }
    }
    levels[i] = level;
    for (const std::string& name : node.outputs) {
      if (!name.empty()) producers[name] = i;
    }
  }
  return levels;
}

constexpr int64_t kMostBatch = 8, kMostLength = 512;  // as docs/user/shapes.md has them

// Returns what the user gave for dimension `d` of a name, which may be that of a symbol.
std::optional<DimRange> given_dim(const ModelOptions& given, const std::string& name, size_t d) {
  if (const auto shape = given.shapes.find(name);
      shape != given.shapes.end() && d < shape->second.size())
    return DimRange{shape->second[d], shape->second[d], ""};
  const auto range = given.ranges.find(name);
  if (range == given.ranges.end() || d >= range->second.size()) return std::nullopt;
  return range->second[d];
}

// Returns the range that the user gave for a dimension of an input of the model, by itself or by
// its symbol.
std::optional<DimRange> given_range(const ModelOptions& given, const std::string& input, size_t d) {
  std::optional<DimRange> dim = given_dim(given, input, d);
  if (dim && dim->max == 0) dim = given_dim(given, dim->symbol, 0);
  if (!dim || dim->max == 0) return std::nullopt;
  return DimRange{dim->min, dim->max, ""};
}

// Fills in what the group reads and what others read of it.
void find_boundary(const Graph& graph, Group& group) {
  const std::set<size_t> own(group.nodes.begin(), group.nodes.end());
  std::set<std::string> read_outside(graph.outputs.begin(), graph.outputs.end());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const GraphNode& node = graph.nodes[i];
    read_outside.insert(node.implicit.begin(), node.implicit.end());
    if (!own.contains(i)) read_outside.insert(node.inputs.begin(), node.inputs.end());
  }
  std::set<std::string> seen = {""};
  for (const size_t i : group.nodes) {
    for (const std::string& name : graph.nodes[i].inputs) {
      if (!seen.insert(name).second) continue;
      (graph.values.at(name).constant ? group.constants : group.inputs).push_back(name);
    }
    for (const std::string& name : graph.nodes[i].outputs) {
      if (seen.insert(name).second && read_outside.contains(name)) group.outputs.push_back(name);
    }
  }
}

}  // namespace

Support::Support() {
  for (OperatorInfo& info : operators()) operators_.emplace(info.name, std::move(info));
}

const OperatorInfo* Support::find(const GraphNode& node) const {
  const auto found =
      operators_.find(node.domain.empty() ? node.type : node.domain + "." + node.type);
  return found == operators_.end() ? nullptr : &found->second;
}

bool Support::may_compile(const Graph& graph, const GraphNode& node) const {
  if (node.taken || node.has_subgraphs) return false;
  const OperatorInfo* info = find(node);
  if (info == nullptr) return false;
  const auto opset = graph.opsets.find(node.domain);
  if (node.domain.empty() && opset != graph.opsets.end() &&
      std::none_of(info->opsets.begin(), info->opsets.end(), [&](const OpsetRange& range) {
        return range.since <= opset->second && opset->second <= range.until;
      }))
    return false;
  const auto fits = [&](const std::string& name) { return is_array(graph, name); };
  return std::all_of(node.inputs.begin(), node.inputs.end(), fits) &&
         std::all_of(node.outputs.begin(), node.outputs.end(), fits);
}

bool Support::has_work(const GraphNode& node) const {
  const OperatorInfo* info = find(node);
  return info != nullptr && info->becomes != "view" && info->becomes != "folded";
}

TiedSizes::TiedSizes(const Graph& graph, const ModelOptions& given) : graph_(graph), given_(given) {
  for (const std::string& name : graph.inputs) {
    const std::vector<GraphDim>& dims = graph.values.at(name).dims;
    for (size_t d = 0; d < dims.size(); ++d) {
      if (dims[d].extent >= 0 || dims[d].symbol.empty()) continue;
      symbols_.insert(dims[d].symbol);
      const DimRange rule{1, d == 0 ? kMostBatch : kMostLength, ""};
      const auto [range, fresh] = ranges_.emplace(dims[d].symbol, rule);
      if (const std::optional<DimRange> told = given_range(given, name, d)) range->second = *told;
    }
  }
  for (const auto& [name, range] : given.ranges) {
    for (const DimRange& dim : range) symbols_.insert(dim.symbol);
  }
}

bool TiedSizes::has(const std::string& value) const {
  const auto& inputs = graph_.inputs;
  if (std::find(inputs.begin(), inputs.end(), value) != inputs.end()) return true;
  if (given_.shapes.contains(value) || given_.ranges.contains(value)) return true;
  const std::vector<GraphDim>& dims = graph_.values.at(value).dims;
  return std::all_of(dims.begin(), dims.end(), [&](const GraphDim& dim) {
    return dim.extent >= 0 || (!dim.symbol.empty() && symbols_.contains(dim.symbol));
  });
}

bool TiedSizes::leave_out_others(const Group& group, std::vector<bool>& usable) const {
  std::set<std::string> others;
  for (const std::string& name : group.inputs) {
    if (!has(name)) others.insert(name);
  }
  if (others.empty()) return false;
  for (const size_t i : group.nodes) {
    const GraphNode& node = graph_.nodes[i];
    if (std::none_of(node.inputs.begin(), node.inputs.end(),
                     [&](const std::string& name) { return others.contains(name); }))
      continue;
    usable[i] = false;
    for (const std::string& name : node.outputs) {
      if (!name.empty() && !has(name)) others.insert(name);
    }
  }
  return true;
}

std::map<std::string, ShapeRange> TiedSizes::ranges_between_parts(const Group& group) const {
  std::map<std::string, ShapeRange> ranges;
  for (const std::string& name : group.inputs) {
    if (std::find(graph_.inputs.begin(), graph_.inputs.end(), name) != graph_.inputs.end() ||
        given_.shapes.contains(name) || given_.ranges.contains(name))
      continue;
    for (const GraphDim& dim : graph_.values.at(name).dims) {
      const auto range = ranges_.find(dim.symbol);
      if (dim.extent >= 0 || given_.shapes.contains(dim.symbol) ||
          given_.ranges.contains(dim.symbol) || range == ranges_.end())
        continue;
      ranges[dim.symbol] = {range->second};
    }
  }
  return ranges;
}

std::vector<Group> group_nodes(const Graph& graph, const std::vector<bool>& usable) {
  const std::vector<int> levels = levels_of(graph, usable);
  std::map<int, Group> groups;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (usable[i]) groups[levels[i]].nodes.push_back(i);
  }
  std::vector<Group> list;
  for (auto& [level, group] : groups) {
    find_boundary(graph, group);
    if (!group.outputs.empty()) list.push_back(std::move(group));
  }
  return list;
}

}  // namespace hone::ort
