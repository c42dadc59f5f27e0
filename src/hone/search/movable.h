// search/movable.h - chooses which decisions the searches of a run move (--movable): the roles that
// matter most on the device (Fasor, section 5), in alike tasks, by the cost model, or for what
// limits the task, memory or arithmetic (Fasor's scores); random ones to compare with; named ones.
// The choice is made for each task among the roles that are open there.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "hone/search/searcher.h"
#include "hone/space/subspace.h"
#include "hone/trial/sensitivity.h"

namespace hone::search {

class MovableDecisions {
 public:
  static constexpr int kUsualCount = 7;  // number of roles, as in the paper
  static constexpr int kMostCount = 99;

  // Parses "all", "7", "random", "random:7", "learned", "learned:7", "predicted", "predicted:7",
  // "scores", "scores:7" or "roles:column+order". If `powers_of_two` is true, tiles have only such
  // lengths.
  [[nodiscard]] static Result<MovableDecisions> parse(std::string_view text,
                                                      bool powers_of_two = false);
  // Returns whether some decision is fixed, or has fewer options.
  [[nodiscard]] bool restricts() const { return by_ != By::kAll || powers_of_two_; }
  // Returns whether the roles are chosen by what was measured on the device, and whether they are
  // so if something was.
  [[nodiscard]] bool needs_sensitivities() const {
    return by_ == By::kDevice || by_ == By::kLearned;
  }
  [[nodiscard]] bool reads_sensitivities() const {
    return needs_sensitivities() || by_ == By::kScores;
  }
  // Takes what was measured. If it is needed, it is an error if that is nothing, or fewer roles
  // than shall move. `where` says in words what it was measured on, for messages.
  [[nodiscard]] Status set_sensitivities(std::vector<trial::TaskSensitivity> measured,
                                         std::string_view where);
  // Chooses what moves of a task's space.
  [[nodiscard]] Result<space::Movable> choose(const SearchTask& task,
                                              const compute::Dag& dag) const;
  [[nodiscard]] const std::string& text() const { return text_; }  // as it was parsed
  // Returns whether the roles that move are named, and an error if one of these is no role of any
  // kernel's decisions, or if all decisions with such a role have one option alone. `spaces` are
  // those of all kernels.
  [[nodiscard]] bool names_roles() const { return by_ == By::kNames; }
  [[nodiscard]] Status check_names(std::span<const space::Space* const> spaces) const;
  // Returns the error if no decision of any kernel moves. `roles` are those of their decisions.
  [[nodiscard]] Status nothing_moves(const std::set<std::string>& roles) const;

 private:
  enum class By : uint8_t { kAll, kDevice, kRandom, kLearned, kPredicted, kScores, kNames };
  using Scores = std::map<std::string, double, std::less<>>;  // by role, larger ones matter more
  [[nodiscard]] Result<Scores> score(const SearchTask& task, const compute::Dag& dag,
                                     const std::vector<std::string>& roles) const;
  [[nodiscard]] Result<Scores> score_by_bounds(const SearchTask& task) const;

  std::string text_;
  By by_ = By::kAll;
  bool powers_of_two_ = false;
  int count_ = kUsualCount;
  std::set<std::string, std::less<>> names_;
  std::vector<trial::TaskSensitivity> measured_;
};

// Returns the mean size of the effects of each role over the tasks that have it.
[[nodiscard]] std::map<std::string, double, std::less<>> mean_effects(
    std::span<const trial::TaskSensitivity> tasks);
// Returns the same for a task: the mean of all, and that of the few tasks of its family that are
// most alike, which count the more the nearer they are.
[[nodiscard]] std::map<std::string, double, std::less<>> effects_like(
    std::span<const trial::TaskSensitivity> tasks, const compute::Dag& dag);
// Returns the same for a task whose default schedule spends the share `memory` of its time on
// memory: tasks count the more the nearer their own shares are. Tasks without a share count in the
// mean of all alone.
[[nodiscard]] std::map<std::string, double, std::less<>> effects_by_memory(
    std::span<const trial::TaskSensitivity> tasks, double memory);

}  // namespace hone::search
