#include "hone/session/decided_forms.h"

#include <algorithm>
#include <functional>
#include <set>

namespace hone {
namespace {

constexpr int64_t kLeast = -(int64_t{1} << 40);  // data may say any number up to the most

// Returns the call after which a buffer has its contents, by buffers that one call or several ones
// write. What calls of loops write, and what loops copy, is left out: it changes later.
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

// Keeps the limits of which `keeps` says so of their forms, which it may change.
void keep_forms(KernelLimits& limits, const std::function<bool(int& form)>& keeps) {
  std::erase_if(limits.outputs, [&](ir::ParamLimit& one) { return !keeps(one.limit.form); });
  std::erase_if(limits.ends, [&](auto& end) { return !keeps(end.second.form); });
}

}  // namespace

DecidedForms::DecidedForms(const graph::TaskList& tasks)
    : first_(static_cast<int>(tasks.varying.forms.size())), all_(tasks.varying) {
  const std::map<int, int> writers = last_writers(tasks);
  for (const graph::DecidedSize& size : tasks.decided) {
    std::vector<Written> written;
    for (const graph::DecidedPlace& place : size.places) {
      const Shape& shape = tasks.buffers[static_cast<size_t>(place.buffer)].shape;
      if (const auto it = writers.find(place.buffer); it != writers.end())
        written.push_back({place, num_elements(shape), it->second});
    }
    if (written.empty()) continue;
    std::ranges::stable_sort(written, {}, &Written::call);
    const int form = static_cast<int>(all_.forms.size());
    all_.forms.push_back({.terms = {{1, {static_cast<int>(all_.symbols.size())}}}});
    all_.symbols.push_back({"", kLeast, size.most});
    for (const Written& one : written) {
      std::vector<int>& forms = of_places_[{graph::Argument::Kind::kArena, one.place.buffer}];
      forms.resize(static_cast<size_t>(one.elements), -1);
      forms[static_cast<size_t>(one.place.element)] = form;
    }
    written_.push_back(std::move(written));
  }
}

const DecidedForms::Written* DecidedForms::find(int form, int call) const {
  const Written& earliest = written_[static_cast<size_t>(form - first_)].front();
  return earliest.call < call ? &earliest : nullptr;
}

void DecidedForms::leave_out_unknown(int call, KernelLimits& limits) const {
  std::set<int> kept;
  keep_forms(limits, [&](const int& form) {
    if (!contains(form) || kept.contains(form)) return true;
    const bool has_number = first_ + std::ssize(kept) < graph::kMaxForms;
    if (!has_number || find(form, call) == nullptr) return false;
    kept.insert(form);
    return true;
  });
}

std::set<int> DecidedForms::buffers_of(int call, const KernelLimits& limits) const {
  std::set<int> buffers;
  const auto add = [&](int form) {
    if (contains(form)) buffers.insert(find(form, call)->place.buffer);
  };
  for (const ir::ParamLimit& one : limits.outputs) add(one.limit.form);
  for (const auto& [stage, end] : limits.ends) add(end.form);
  return buffers;
}

std::vector<int> DecidedForms::number_for(int call, KernelLimits& limits) const {
  std::vector<int> buffers;
  std::map<int, int> numbers;  // by form
  const auto number = [&](int& form) {
    if (!contains(form)) return true;
    const int next = first_ + static_cast<int>(numbers.size());
    HONE_ASSERT(next < graph::kMaxForms, "leave_out_unknown() kept no more");
    const Written& from = *find(form, call);
    const auto [it, fresh] = numbers.emplace(form, next);
    form = it->second;
    if (!fresh) return true;
    const auto known = std::ranges::find(buffers, from.place.buffer);
    const auto buffer = static_cast<size_t>(known - buffers.begin());
    if (known == buffers.end()) buffers.push_back(from.place.buffer);
    limits.decided.push_back({buffer, from.place.element, from.elements});
    return true;
  };
  limits.decided_from = first_;
  limits.multiples.resize(static_cast<size_t>(first_));
  keep_forms(limits, number);
  return buffers;
}

}  // namespace hone
