#include "hone/graph/size_probes.h"

#include <algorithm>
#include <set>

#include "hone/graph/infer.h"
#include "hone/graph/size_ties.h"
#include "hone/graph/widen_nodes.h"

namespace hone::graph {
namespace {

using Symbols = std::vector<int64_t>;

constexpr int64_t kSideProbes = 68;  // pixels: twice the usual stride of a model, 32
constexpr int64_t kLeastSideProbes = 16;

// Symbols of the sides of images and the like, which are dimensions behind the second of an input,
// with the number of consecutive values of each at which the model is looked at.
std::map<int, int64_t> side_symbols(const std::map<std::string, std::vector<SizeForm>>& inputs) {
  std::map<int, int64_t> sides;
  for (const auto& [name, forms] : inputs) {
    for (size_t d = 2; d < forms.size(); ++d) {
      for (const SizeTerm& term : forms[d].terms) {
        const int64_t pixels = std::max<int64_t>(term.factor, 1);
        for (const int symbol : term.symbols) {
          int64_t& values = sides[symbol];
          values = std::max({values, kSideProbes / pixels, kLeastSideProbes});
        }
      }
    }
  }
  return sides;
}

// The points at which the model is looked at: each symbol alone and each two, with the others at
// their largest, and all together.
std::vector<Symbols> probe_points(const std::vector<SizeSymbol>& symbols,
                                  const std::map<int, int64_t>& sides) {
  std::vector<Symbols> points;
  const auto add = [&](const Symbols& point) {
    const bool largest =
        std::equal(point.begin(), point.end(), symbols.begin(),
                   [](int64_t value, const SizeSymbol& symbol) { return value == symbol.max; });
    if (!largest && std::find(points.begin(), points.end(), point) == points.end())
      points.push_back(point);
  };
  Symbols most;
  for (const SizeSymbol& symbol : symbols) most.push_back(symbol.max);
  for (size_t i = 0; i < symbols.size(); ++i) {
    const int64_t min = symbols[i].min, max = symbols[i].max;
    std::vector<int64_t> values = {max - 1, max - 2, (min + max) / 2, min + 1, min};
    // Quotients, as of strides, show where they jump.
    const auto side = sides.find(static_cast<int>(i));
    for (int64_t k = 3; side != sides.end() && k < side->second; ++k) values.push_back(max - k);
    for (const int64_t value : values) {
      Symbols point = most;
      point[i] = std::clamp(value, min, max);
      add(point);
    }
  }
  // Products of two symbols show where both change.
  for (size_t i = 0; i < symbols.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      Symbols point = most;
      point[i] = symbols[i].min;
      point[j] = symbols[j].min;
      add(point);
    }
  }
  for (const int64_t quarters : {0, 1, 2, 3}) {
    Symbols point;
    for (const SizeSymbol& symbol : symbols)
      point.push_back(symbol.min + (symbol.max - symbol.min) * quarters / 4);
    add(point);
  }
  return points;
}

void find_twins(SizeProbe& probe, const Graph& raw, const std::vector<size_t>& ends,
                const std::vector<size_t>& own_ends) {
  probe.twins.assign(ends.empty() ? raw.values.size() : ends.back(), kNoValue);
  probe.alike.assign(probe.twins.size(), false);
  for (size_t id = 0; id < raw.values.size(); ++id) probe.twins[id] = static_cast<ValueId>(id);
  size_t begin = raw.values.size(), own_begin = raw.values.size();
  for (size_t node = 0; node < ends.size() && node < own_ends.size(); ++node) {
    const bool alike = ends[node] - begin == own_ends[node] - own_begin;
    for (size_t id = begin; alike && id < ends[node]; ++id) {
      probe.twins[id] = static_cast<ValueId>(own_begin + (id - begin));
      probe.alike[id] = true;
    }
    for (const ValueId out : raw.nodes[node].outputs) {
      if (out != kNoValue) probe.alike[static_cast<size_t>(out)] = alike;
    }
    begin = ends[node];
    own_begin = own_ends[node];
  }
  probe.producers = Uses(probe.graph).producer;
}

}  // namespace

void set_sizes(Graph& raw, const InputSizes& sizes, const std::vector<int64_t>& symbols) {
  if (raw.rebatch && sizes.batch) raw.rebatch->to = value_of(*sizes.batch, symbols);
  for (const ValueId id : raw.inputs) {
    Value& value = raw.value(id);
    const auto at = sizes.inputs.find(value.name);
    if (at == sizes.inputs.end()) continue;
    for (size_t d = 0; d < value.shape.size(); ++d)
      value.shape[d] = value_of(at->second[d], symbols);
    if (num_elements(value.shape) == 0) value.constant = Tensor(value.dtype, value.shape);
  }
}

bool has_sides(const std::map<std::string, std::vector<SizeForm>>& inputs) {
  return !side_symbols(inputs).empty();
}

const Value* SizeProbe::twin(ValueId id) const {
  const auto at = static_cast<size_t>(id);
  return at < twins.size() && twins[at] != kNoValue ? &graph.value(twins[at]) : nullptr;
}

const Node* SizeProbe::producer_of_twin(ValueId id) const {
  const auto at = static_cast<size_t>(id);
  if (at >= twins.size() || !alike[at] || twins[at] == kNoValue) return nullptr;
  const int producer = producers[static_cast<size_t>(twins[at])];
  return producer < 0 ? nullptr : &graph.nodes[static_cast<size_t>(producer)];
}

std::string to_text(const std::vector<SizeSymbol>& symbols, const std::vector<int64_t>& values) {
  std::string text;
  for (size_t s = 0; s < symbols.size(); ++s)
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", symbols[s].name, values[s]);
  return text;
}

Result<std::vector<SizeProbe>> make_probes(const Graph& raw, const std::vector<size_t>& ends,
                                           const InputSizes& sizes, ProbeSizes which) {
  std::vector<SizeProbe> probes;
  const std::map<int, int64_t> sides =
      which == ProbeSizes::kAll ? side_symbols(sizes.inputs) : std::map<int, int64_t>();
  const std::vector<Symbols> points = probe_points(sizes.symbols, sides);
  probes.reserve(points.size());  // moving graphs apart would copy them
  for (const Symbols& point : points) {
    SizeProbe probe{.symbols = point, .graph = raw, .twins = {}, .producers = {}, .alike = {}};
    set_sizes(probe.graph, sizes, point);
    std::vector<size_t> own_ends;
    if (const Status status = infer_shapes(probe.graph, own_ends); !status.ok()) {
      return Status(status.code(),
                    fmt::format("{}; this is so at {}, but not at the largest sizes: {}",
                                status.message(), to_text(sizes.symbols, point), kValidRanges));
    }
    find_twins(probe, raw, ends, own_ends);
    probes.push_back(std::move(probe));
  }
  return probes;
}

Status infer_smallest(const Graph& raw, const InputSizes& sizes) {
  Symbols smallest;
  for (const SizeSymbol& symbol : sizes.symbols) smallest.push_back(symbol.min);
  Graph graph = with_shapes_only(raw).value_or(raw);
  set_sizes(graph, sizes, smallest);
  return infer_shapes(graph);
}

}  // namespace hone::graph
