// cost/net/meta.h - meta-learning of a net after its supervised training (MetaTune, section 5): the
// parameters are moved to where few schedules of a task that is not known yet teach most of it.
//
//   maml     the gradient of the loss after adaptation, second derivatives included (Finn, Abbeel
//            and Levine 2017)
//   fomaml   the same without second derivatives
//   reptile  towards where the adaptation leads (Nichol, Achiam and Schulman 2018)
#pragma once

#include <span>
#include <string>
#include <vector>

#include "hone/base/status.h"
#include "hone/cost/net/family.h"

namespace hone::cost::net {

enum class Meta : uint8_t { kNone, kMaml, kFomaml, kReptile };
[[nodiscard]] std::vector<std::string> meta_names();

// A tuning task counts with its number of threads. The defaults are those of public code of the
// paper for the steps and rates, and of its form for TenSet for the sizes.
struct MetaTraining {
  Meta kind = Meta::kNone;
  int steps = 1;        // steps of the inner loop: gradient descent on the support set
  double rate = 2e-3;   // learning rate of the inner loop
  int ways = 1;         // tuning tasks in a task of meta-learning
  int shots = 32;       // schedules of each in the support set
  int queries = 32;     // other schedules of each in the query set, whose loss counts
  int tasks = 8;        // number of tasks in a batch
  int batches = 64;     // number of batches in an epoch
  int epochs = 30;      // most epochs, after those of the supervised training
  int patience = 5;     // epochs without a better loss after adaptation; 0: all are done
  double outer = 1e-3;  // rate of Adam
  bool last = false;    // only Family::last learns, in both loops

  [[nodiscard]] bool wanted() const { return kind != Meta::kNone; }
};

// The options of meta-learning, as those of a family are given: "steps=5,rate=0.01".
[[nodiscard]] std::span<const FamilyOption> meta_options();
// Returns the training of that name. `own` are the options of a recipe, which those of `options`
// replace. An error names the option, or says that there is nothing that options could be for.
[[nodiscard]] Result<MetaTraining> parse_meta(std::string_view name, std::string_view own,
                                              std::string_view options);
// Returns all options as text, which parse_meta() reads.
[[nodiscard]] std::string format_options(const MetaTraining& meta);

// Returns an error if there are no two tuning tasks, or fewer than `ways`, that have the schedules
// which a task of meta-learning takes. `sizes` are the numbers of schedules, `what` says of which
// tasks they are. `compares` is true for a loss that compares schedules, which takes two of a task.
[[nodiscard]] Status check_tasks(const MetaTraining& meta, std::span<const int64_t> sizes,
                                 std::string_view what, bool compares);

}  // namespace hone::cost::net
