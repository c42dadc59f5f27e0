// The super-graph of cost/inputs/program_graph.h.
#include <algorithm>
#include <array>

#include "hone/cost/inputs/program_graph.h"

namespace hone::cost {
namespace {

enum Role : uint8_t { kMain, kSum, kRoot, kPoint, kBody };
// One more than what was found where loops filled the places, in 4,000 schedules for AVX-512 of
// each of 220 tasks of all kernel kinds and in 40 for AVX2 and NEON: 11 of a root, 9 of other
// points, 8 of a body. A test draws some.
constexpr TemplateRole kRoles[] = {
    {"main", 1, 6, 4}, {"sum", 5, 4, 3}, {"root", 6, 12, 0}, {"point", 6, 10, 0}, {"body", 2, 9, 6},
};

struct Slot {
  int first;  // its first place: loops over points, then reductions
  int spatial, reduce;
};

std::vector<Slot> make_slots(Role role) {
  int first = 0;
  for (size_t r = 0; r < role; ++r)
    first += kRoles[r].stages * (kRoles[r].spatial + kRoles[r].reduce);
  std::vector<Slot> slots;
  for (int i = 0; i < kRoles[role].stages; ++i) {
    slots.push_back({first, kRoles[role].spatial, kRoles[role].reduce});
    first += kRoles[role].spatial + kRoles[role].reduce;
  }
  return slots;
}

const std::vector<Slot>& slots_of(Role role) {
  static const std::array<std::vector<Slot>, std::size(kRoles)> kSlots = [] {
    std::array<std::vector<Slot>, std::size(kRoles)> slots;
    for (size_t r = 0; r < slots.size(); ++r) slots[r] = make_slots(static_cast<Role>(r));
    return slots;
  }();
  return kSlots[role];
}

class Mapper {
 public:
  Mapper(const ProgramGraph& graph, const schedule::State& state) : graph_(graph), state_(state) {
    double most = -1;
    for (const analysis::Nest& nest : graph.nests) {
      if (is_reduction(nest.stage) && nest.operations() > most)
        most = nest.operations(), main_ = nest.stage;
    }
  }

  Result<std::vector<int>> run() {
    std::vector<int> places(graph_.loops.size(), -1);
    for (size_t s = 0; s < state_.stages.size(); ++s) {
      std::vector<size_t> spatial, reduce;
      for (size_t i = 0; i < graph_.loops.size(); ++i) {
        const GraphLoop& loop = graph_.loops[i];
        if (loop.loop.stage != static_cast<int>(s)) continue;
        (is_body(static_cast<int>(s)) ? loop.body : loop.loop.reduce) ? reduce.push_back(i)
                                                                      : spatial.push_back(i);
      }
      if (spatial.empty() && reduce.empty()) continue;
      HONE_RETURN_IF_ERROR(place_stage(static_cast<int>(s), spatial, reduce, places));
    }
    return places;
  }

 private:
  [[nodiscard]] const compute::Stage& stage(int s) const {
    return state_.stages[static_cast<size_t>(s)].info->stage;
  }
  [[nodiscard]] bool is_body(int s) const { return stage(s).is_extern(); }
  [[nodiscard]] bool is_reduction(int s) const { return !stage(s).reduce.empty(); }
  [[nodiscard]] Role role_of(int s) const {
    if (is_body(s)) return kBody;
    if (is_reduction(s)) return s == main_ ? kMain : kSum;
    return state_.stages[static_cast<size_t>(s)].compute.kind == schedule::AttachKind::kRoot
               ? kRoot
               : kPoint;
  }

  Status place_stage(int s, std::vector<size_t> spatial, std::vector<size_t> reduce,
                     std::vector<int>& places) {
    const Role role = role_of(s);
    const TemplateRole& room = kRoles[role];
    const auto too_large = [&](std::string_view what, size_t found, int most) {
      return error(
          Code::kUnsupported,
          "the program's graph is larger than the template of graphs: {} has {} {}, expected at "
          "most {}; use a net of graphs as they are (super=0)",
          stage(s).name, found, what, most);
    };
    if (used_[role] == room.stages)
      return error(
          Code::kUnsupported,
          "the program's graph is larger than the template of graphs: {} is one more stage of the "
          "role {}, expected at most {}; use a net of graphs as they are (super=0)",
          stage(s).name, room.name, room.stages);
    if (std::ssize(spatial) > room.spatial)
      return too_large("loops over points", spatial.size(), room.spatial);
    if (std::ssize(reduce) > room.reduce)
      return too_large("loops over terms or of a body", reduce.size(), room.reduce);
    const Slot& slot = slots_of(role)[static_cast<size_t>(used_[role]++)];
    // The graph has outer loops before inner ones.
    std::reverse(spatial.begin(), spatial.end());
    if (role != kBody) std::reverse(reduce.begin(), reduce.end());
    for (size_t i = 0; i < spatial.size(); ++i)
      places[spatial[i]] = slot.first + static_cast<int>(i);
    for (size_t i = 0; i < reduce.size(); ++i)
      places[reduce[i]] = slot.first + slot.spatial + static_cast<int>(i);
    return ok_status();
  }

  const ProgramGraph& graph_;
  const schedule::State& state_;
  int main_ = -1;                              // the reduction with the most arithmetic
  std::array<int, std::size(kRoles)> used_{};  // stages by role
};

}  // namespace

std::span<const TemplateRole> template_roles() { return kRoles; }

int64_t template_loops() {
  int64_t loops = 0;
  for (const TemplateRole& role : kRoles) loops += role.stages * (role.spatial + role.reduce);
  return loops;
}

Result<std::vector<int>> map_to_template(const ProgramGraph& graph, const schedule::State& state) {
  return Mapper(graph, state).run();
}

Status write_template(const ProgramGraph& graph, const schedule::State& state, float* nodes,
                      float* mask) {
  HONE_ASSIGN_OR_RETURN(const std::vector<int> places, map_to_template(graph, state));
  const size_t width = graph_node_names().size();
  const auto write = [&](size_t row, GraphNode kind, const GraphLoop* loop) {
    if (mask) mask[row] = 1;
    if (nodes == nullptr) return;
    RowWriter writer(std::span(nodes + row * width, width));
    write_graph_node(&graph, kind, loop, writer);
  };
  write(0, GraphNode::kRoot, nullptr);
  for (size_t i = 0; i < places.size(); ++i)
    write(1 + static_cast<size_t>(places[i]), GraphNode::kInterval, &graph.loops[i]);
  return ok_status();
}

const std::vector<float>& template_edges() {
  static const std::vector<float> kEdges = [] {
    const auto loops = static_cast<size_t>(template_loops());
    const size_t nodes = 1 + 2 * loops;
    const auto for_node = [&](size_t place) { return 1 + loops + place; };
    std::vector<std::pair<size_t, size_t>> joined;
    for (size_t place = 0; place < loops; ++place) {
      joined.emplace_back(0, for_node(place));
      joined.emplace_back(1 + place, for_node(place));
    }
    const auto join_ranks = [&](int first, int count) {
      for (int i = 0; i + 1 < count; ++i)
        joined.emplace_back(for_node(static_cast<size_t>(first + i)),
                            for_node(static_cast<size_t>(first + i + 1)));
    };
    for (const Role role : {kMain, kSum, kRoot, kPoint, kBody}) {
      for (const Slot& slot : slots_of(role)) {
        join_ranks(slot.first, slot.spatial);
        join_ranks(slot.first + slot.spatial, slot.reduce);
      }
    }
    std::vector<float> edges(nodes * nodes);
    write_edges(joined, nodes, nodes, edges.data());
    return edges;
  }();
  return kEdges;
}

}  // namespace hone::cost
