#include "hone/session/decided_forms.h"

#include <algorithm>

namespace hone {
namespace {

constexpr int64_t kLeast = -(int64_t{1} << 40);  // data may say any number up to the most

// The call after which a buffer has its contents, by the buffers of which that is one call: calls
// of loops, and what loops copy, change theirs later.
std::map<int, int> last_writers(const graph::TaskList& tasks) {
  std::map<int, int> writers;
  std::vector<int> in_loops;
  for (int c = 0; c < std::ssize(tasks.calls); ++c) {
    const graph::TaskCall& call = tasks.calls[static_cast<size_t>(c)];
    for (size_t i = 0; i < call.arguments.size(); ++i) {
      const graph::Argument& to = call.arguments[i];
      if (call.dag.params[i].role != ir::Role::kOutput || to.kind != graph::Argument::Kind::kArena)
        continue;
      writers[to.index] = c;
      if (call.loop >= 0) in_loops.push_back(to.index);
    }
  }
  for (const int buffer : in_loops) writers.erase(buffer);
  for (const graph::TaskLoop& loop : tasks.loops) {
    for (const int buffer : {loop.condition, loop.limit, loop.turn, loop.turns, loop.shapes})
      writers.erase(buffer);
    for (const graph::LoopCopy& copy : loop.copies) writers.erase(copy.to);
  }
  return writers;
}

}  // namespace

DecidedForms::DecidedForms(const graph::TaskList& tasks)
    : first_(static_cast<int>(tasks.varying.forms.size())), all_(tasks.varying) {
  const std::map<int, int> writers = last_writers(tasks);
  for (const graph::DecidedSize& size : tasks.decided) {
    std::vector<Written> written;
    for (const graph::DecidedPlace& place : size.places) {
      if (const auto it = writers.find(place.buffer); it != writers.end())
        written.push_back({place, it->second});
    }
    if (written.empty()) continue;
    std::ranges::stable_sort(written, {}, &Written::call);
    const int form = static_cast<int>(all_.forms.size());
    all_.forms.push_back({.terms = {{1, {static_cast<int>(all_.symbols.size())}}}});
    all_.symbols.push_back({"", kLeast, size.most});
    for (const Written& one : written) {
      const auto buffer = static_cast<size_t>(one.place.buffer);
      std::vector<int>& forms = of_places_[{graph::Argument::Kind::kArena, one.place.buffer}];
      forms.resize(static_cast<size_t>(num_elements(tasks.buffers[buffer].shape)), -1);
      forms[static_cast<size_t>(one.place.element)] = form;
    }
    written_.push_back(std::move(written));
  }
}

std::optional<graph::DecidedPlace> DecidedForms::place_for(int form, int call) const {
  const Written& earliest = written_[static_cast<size_t>(form - first_)].front();
  return earliest.call < call ? std::optional(earliest.place) : std::nullopt;
}

}  // namespace hone
