#include "hone/schedule/thread_legality.h"

#include <algorithm>
#include <optional>

#include "hone/ir/gpu/thread_nest.h"
#include "hone/schedule/fragment_layout.h"
#include "hone/schedule/fused_rows.h"
#include "hone/schedule/pipeline.h"

namespace hone::schedule {
namespace {

constexpr int64_t kMostOfThread = 1024;  // elements, beyond any register file; bounds the unrolling

using Loops = std::vector<std::pair<int, int>>;  // (stage, loop)

class ThreadLegality {
 public:
  ThreadLegality(const State& state, const Bounds& bounds) : state_(state), bounds_(bounds) {
    const size_t stages = state.stages.size();
    threaded_.assign(stages, false);
    for (size_t s = 0; s < stages; ++s) {
      if (!state.stages[s].thread_loops().empty()) threaded_[root_of(s)] = true;
    }
  }

  Status run() const {
    for (int s = 0; s < static_cast<int>(state_.stages.size()); ++s) {
      HONE_RETURN_IF_ERROR(check_loops(state_.stages[s]));
      HONE_RETURN_IF_ERROR(check_place(s));
      if (state_.stages[s].scope == ir::Scope::kFragment) HONE_RETURN_IF_ERROR(check_fragment(s));
      if (state_.stages[s].pipeline_depth > 0)
        HONE_RETURN_IF_ERROR(check_pipeline(state_, bounds_, s));
    }
    return ok_status();
  }

 private:
  [[nodiscard]] size_t root_of(size_t s) const {
    while (state_.stages[s].compute.kind == AttachKind::kAt)
      s = static_cast<size_t>(state_.stages[s].compute.stage);
    return s;
  }
  [[nodiscard]] Annotation annotation(std::pair<int, int> loop) const {
    return state_.stages[loop.first].loops[loop.second].annotation;
  }
  // Returns the loops over threads around a place.
  [[nodiscard]] Loops threads_around(const Place& place) const {
    Loops loops = enclosing_loops(state_, place);
    std::erase_if(loops, [&](const auto& loop) { return !is_thread_loop(annotation(loop)); });
    return loops;
  }
  // Returns the loops over threads that run a stage: its own, or those around it.
  [[nodiscard]] Loops threads_of(int s) const {
    Loops loops = threads_around(state_.stages[s].compute);
    for (const int leaf : state_.stages[s].thread_loops()) loops.emplace_back(s, leaf);
    return loops;
  }

  static Status check_loops(const StageState& stage) {
    const auto threads = stage.thread_loops();
    int warps = 0, lanes = 0;
    for (size_t i = 0; i < threads.size(); ++i) {
      const Loop& loop = stage.loops[threads[i]];
      warps += loop.annotation == Annotation::kWarp ? 1 : 0;
      lanes += loop.annotation == Annotation::kLane ? 1 : 0;
      if (i > 0 && stage.find_leaf(threads[i]) != stage.find_leaf(threads[i - 1]) + 1) {
        return invalid("{}: loop {} over threads does not follow {}", stage.name(), loop.name,
                       stage.loops[threads[i - 1]].name);
      }
    }
    const bool is_warp = warps == 1 && lanes == 1 && threads.size() == 2 &&
                         stage.loops[threads[0]].annotation == Annotation::kWarp;
    const bool are_warps = lanes == 0 && warps == static_cast<int>(threads.size());
    if (warps + lanes > 0 && !is_warp && !are_warps)
      return invalid("{}: expected one loop over lanes inside one over warps", stage.name());
    return ok_status();
  }

  [[nodiscard]] Status check_place(int s) const {
    const StageState& stage = state_.stages[s];
    const bool is_of_block =
        stage.scope == ir::Scope::kShared || stage.scope == ir::Scope::kFragment;
    if (!threaded_[root_of(static_cast<size_t>(s))]) {
      if (!is_of_block) return ok_status();
      return invalid("{} is {}, but no loop there runs on threads", stage.name(),
                     ir::scope_name(stage.scope));
    }
    const Loops around = threads_around(stage.compute);
    const auto own = stage.thread_loops();
    if (!around.empty() && !own.empty()) {
      return invalid("{} is computed by one thread, but its loop {} has several", stage.name(),
                     stage.loops[own[0]].name);
    }
    if (around.empty() && own.empty())
      return invalid("{} is computed by a block, but has no loop over threads", stage.name());
    if (stage.compute.kind == AttachKind::kRoot) {
      return stage.info->constant ? invalid("{} runs at compile time, on no thread", stage.name())
                                  : ok_status();
    }
    const StageState& at = state_.stages[stage.compute.stage];
    if (is_thread_loop(at.loops[stage.compute.loop].annotation) &&
        at.thread_loops().back() != stage.compute.loop) {
      return invalid("{} is computed between the loops over threads of {}", stage.name(),
                     at.name());
    }
    if (around.empty() != threads_around(stage.store).empty())
      return invalid("{} is computed by a thread, but stored by its block", stage.name());
    const bool is_of_thread =
        stage.scope == ir::Scope::kStack || stage.scope == ir::Scope::kRegister;
    if (around.empty() ? is_of_block : is_of_thread) return ok_status();
    return invalid("{} is computed by a {}, where its scope is {}, expected {}", stage.name(),
                   around.empty() ? "block" : "thread", ir::scope_name(stage.scope),
                   around.empty() ? "shared or fragment" : "stack or register");
  }

  // Returns whether the lanes of a warp have what each iteration of these loops has together: which
  // of them has an element is decided where code is printed.
  [[nodiscard]] bool are_warps(const Loops& threads) const {
    return std::all_of(threads.begin(), threads.end(),
                       [&](const auto& loop) { return annotation(loop) == Annotation::kWarp; });
  }

  // Returns whether these are the lanes of warps.
  [[nodiscard]] bool is_of_lanes(const Loops& threads) const {
    return threads.size() == 2 && annotation(threads[1]) == Annotation::kLane;
  }

  // The leading stored dimensions are the loops over threads of whoever writes or reads; all else
  // that indexes registers of a thread is known at compile time.
  [[nodiscard]] Status check_fragment(int s) const {
    const StageState& stage = state_.stages[s];
    const auto& outputs = stage.info->stage.outputs;
    if (outputs.size() > 1 && !stage.layout.empty())
      return invalid("{} is fragment and has several outputs, expected no layout", stage.name());
    int64_t elements = 0;
    for (size_t o = 0; o < outputs.size(); ++o) {
      const int output = static_cast<int>(o);
      HONE_ASSIGN_OR_RETURN(const Fragment fragment, fragment_of(s, output));
      const std::vector<int64_t>& shape = fragment.shape;
      int64_t each = 1;
      for (size_t d = stage.thread_loops().size(); d < shape.size(); ++d) each *= shape[d];
      elements += each;
      HONE_RETURN_IF_ERROR(check_access(fragment, s, stage.info->writes[o]));
      for (int r = s + 1; r < static_cast<int>(state_.stages.size()); ++r) {
        for (const compute::Access& access : state_.stages[r].info->reads) {
          if (access.buffer == outputs[o].buffer)
            HONE_RETURN_IF_ERROR(check_access(fragment, r, access.index));
        }
      }
    }
    if (are_warps(threads_of(s))) elements /= ir::kWarpThreads;
    if (elements > kMostOfThread)
      return invalid("{} keeps {} elements in registers of a thread", stage.name(), elements);
    return ok_status();
  }

  // What an output has in registers.
  struct Fragment {
    int stage, output;
    std::vector<LayoutDim> layout;
    std::vector<int64_t> shape;
  };
  [[nodiscard]] Result<Fragment> fragment_of(int s, int output) const {
    HONE_ASSIGN_OR_RETURN(std::vector<LayoutDim> layout, layout_of(state_, bounds_, s, output));
    const std::vector<StoredDim>& stored = bounds_.stages[s].storage[output];
    std::vector<int64_t> shape = laid_out_shape(layout, stored);
    for (size_t d = 0; layout.size() < stored.size(); ++d) layout.push_back({static_cast<int>(d)});
    return Fragment{s, output, std::move(layout), std::move(shape)};
  }

  [[nodiscard]] Status check_access(const Fragment& fragment, int by,
                                    const std::vector<compute::AffineRow>& rows) const {
    const int s = fragment.stage;
    const StageState &stage = state_.stages[s], &reader = state_.stages[by];
    const std::vector<int64_t>& shape = fragment.shape;
    Loops threads = threads_of(by);
    // Lanes read what is one element of their warp, and a warp reduces what its lanes have.
    const size_t own = stage.thread_loops().size();
    const bool by_lanes =
        by != s && own == 1 && is_of_lanes(threads) && are_warps(threads_of(s)) &&
        std::all_of(shape.begin() + 1, shape.end(), [](int64_t n) { return n == 1; });
    if (by_lanes) threads.pop_back();
    const bool of_lanes =
        by != s && threads.size() == 1 && are_warps(threads) && is_of_lanes(threads_of(s));
    const bool same = threads.size() + (of_lanes ? 1 : 0) == own && own <= shape.size();
    if (!same) {
      return invalid(
          "{} is fragment: {} accesses it in {} loops over threads, it has {} dimensions "
          "and {} loops over threads",
          stage.name(), reader.name(), threads.size(), shape.size(), stage.thread_loops().size());
    }
    std::vector<Linear> places;
    for (size_t d = 0; d < rows.size(); ++d) {
      const std::optional<Linear> place = place_of(fragment, by, rows[d], d);
      if (!place) return invalid("{} has too many loops around it", reader.name());
      places.push_back(*place);
      if (!are_warps(threads)) HONE_RETURN_IF_ERROR(check_rest(s, by, *place, threads));
    }
    if (of_lanes) HONE_RETURN_IF_ERROR(check_reduced(fragment, by, places));
    for (size_t i = 0; i < threads.size(); ++i) {
      const LayoutDim& digit = fragment.layout[i];
      const bool is_there =
          digit.axis == kCopies
              ? extent(threads[i]) == shape[i]
              : is_digit(places[static_cast<size_t>(digit.axis)], digit, threads[i], shape[i]);
      if (is_there) continue;
      return invalid(
          "{} is fragment: its dimension {} of {} is not the loop {} of {} over {} "
          "threads",
          stage.name(), i, shape[i], loop_name(threads[i]), state_.stages[threads[i].first].name(),
          extent(threads[i]));
    }
    return ok_status();
  }

  // Returns the coordinate along a logical dimension, relative to what is stored.
  [[nodiscard]] std::optional<Linear> place_of(const Fragment& fragment, int by,
                                               const compute::AffineRow& row, size_t d) const {
    Linear place;
    place.constant = row.constant;
    SmallVector<bool, 16> taken;
    for (const FusedTerm& term : fused_terms(state_.stages[by], bounds_.stages[by], row, taken)) {
      if (!add_leaves(state_, bounds_, by, term.loop, term.coef, place)) return {};
    }
    for (size_t a = 0; a < row.coef.size(); ++a) {
      if (row.coef[a] == 0 || taken[a]) continue;
      const AxisBounds& axis = bounds_.stages[by].axes[a];
      if (!place.add(axis.min, row.coef[a]) || !place.add(axis.own, row.coef[a])) return {};
    }
    const std::vector<StoredDim>& stored = bounds_.stages[fragment.stage].storage[fragment.output];
    if (!place.add(stored[d].min, -1)) return {};
    return place;
  }

  // A warp reduces along the lanes that have a fragment, which all of its lanes do.
  [[nodiscard]] Status check_reduced(const Fragment& fragment, int by,
                                     const std::vector<Linear>& places) const {
    const LayoutDim& digit = fragment.layout[1];
    const Linear* place = digit.axis == kCopies || digit.divide != 1 || digit.modulo > 0
                              ? nullptr
                              : &places[static_cast<size_t>(digit.axis)];
    const bool is_one_loop = place != nullptr && place->constant == 0 && place->terms.size() == 1;
    const Term* term = is_one_loop ? &place->terms[0] : nullptr;
    const bool is_reduced = term != nullptr && term->stage == by && term->coef == 1 &&
                            state_.stages[by].loops[term->loop].reduce &&
                            fragment.shape[1] == ir::kWarpThreads &&
                            bounds_.stages[by].loops[term->loop].extent == ir::kWarpThreads;
    if (is_reduced) return ok_status();
    return invalid("{} is fragment: {} reads what other lanes have, but does not reduce {} of them",
                   state_.stages[fragment.stage].name(), state_.stages[by].name(),
                   ir::kWarpThreads);
  }

  [[nodiscard]] Status check_rest(int s, int by, const Linear& place, const Loops& threads) const {
    for (const Term& term : place) {
      const std::vector<Loop>& loops = state_.stages[term.stage].loops;
      int loop = term.loop;
      while (loops[loop].fused_into >= 0) loop = loops[loop].fused_into;
      const Annotation kind = loops[loop].annotation;
      const bool is_thread =
          std::count(threads.begin(), threads.end(), std::pair<int, int>(term.stage, loop)) > 0;
      if (is_thread || kind == Annotation::kUnroll || kind == Annotation::kVectorize) continue;
      return invalid("{} is fragment, but loop {} of {} is not unrolled", state_.stages[s].name(),
                     loops[loop].name, state_.stages[by].name());
    }
    return ok_status();
  }

  // Returns whether this digit of a coordinate is the variable of that loop.
  [[nodiscard]] bool is_digit(const Linear& place, const LayoutDim& digit,
                              std::pair<int, int> thread, int64_t stored) const {
    if (extent(thread) != stored) return false;
    if (stored == 1) return true;
    bool found = false;
    int64_t below = place.constant;
    for (const Term& term : place) {
      if (term.stage == thread.first && term.loop == thread.second) {
        if (term.coef != digit.divide) return false;
        found = true;
      } else if (digit.modulo == 0 || term.coef % (digit.divide * digit.modulo) != 0) {
        if (term.coef < 0) return false;
        below += term.coef * (bounds_.stages[term.stage].loops[term.loop].extent - 1);
      }
    }
    return found && 0 <= place.constant && below < digit.divide;
  }

  [[nodiscard]] int64_t extent(std::pair<int, int> loop) const {
    return bounds_.stages[loop.first].loops[loop.second].extent;
  }
  [[nodiscard]] const std::string& loop_name(std::pair<int, int> loop) const {
    return state_.stages[loop.first].loops[loop.second].name;
  }

  const State& state_;
  const Bounds& bounds_;
  std::vector<bool> threaded_;  // per root stage: whether it, or what it holds, runs on threads
};

}  // namespace

Status check_threads(const State& state, const Bounds& bounds) {
  return ThreadLegality(state, bounds).run();
}

}  // namespace hone::schedule
