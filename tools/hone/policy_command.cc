// hone policy train: teaches a search strategy off line.
#include "hone/base/options.h"
#include "hone/dataset.h"
#include "hone/train_policy.h"

#include "command.h"
#include "command_files.h"
#include "interrupt.h"
#include "option_texts.h"

namespace hone::tool {
namespace {

struct Texts {
  std::string output, only, epochs = std::to_string(PolicyTrainOptions().epochs), budget;
  std::string seed = std::to_string(PolicyTrainOptions().seed);
  PolicyTrainOptions options;
};

Status train(const Texts& texts) {
  PolicyTrainOptions options = texts.options;
  HONE_ASSIGN_OR_RETURN(options.epochs, parse_count("--epochs", texts.epochs, 1, 100000));
  HONE_ASSIGN_OR_RETURN(options.seed, parse_seed(texts.seed));
  if (!texts.budget.empty()) {
    HONE_ASSIGN_OR_RETURN(options.budget_seconds,
                          of_option("--budget", parse_duration(texts.budget)));
  }
  if (!texts.only.empty()) {
    HONE_ASSIGN_OR_RETURN(const TaskList list, read_task_list(texts.only));
    options.only = list.keys();
  }
  options.interrupted = &listen_for_interrupt();
  options.on_epoch = [](const PolicyTrainSummary& summary) {
    fmt::print("epoch {}/{}: {:.1f} s\n", summary.epochs, summary.planned_epochs, summary.seconds);
    std::fflush(stdout);
  };
  HONE_ASSIGN_OR_RETURN(const PolicyTrainSummary summary, train_policy(texts.output, options));
  fmt::print("wrote {}: {} epochs over {} schedules of {} tasks\n", texts.output, summary.epochs,
             summary.schedules, summary.tasks);
  return ok_status();
}

}  // namespace

Command policy_train_command(CLI::App& policy) {
  const auto texts = std::make_shared<Texts>();
  PolicyTrainOptions& options = texts->options;
  CLI::App* app = policy.add_subcommand(
      "train", "Train a strategy on the measured schedules of a database, without measuring");
  add_db(*app, options.db);
  add_measured_device(*app, options.device);
  app->add_option("-o,--output", texts->output,
                  "The state to write, which hone tune --policy-state FILE goes on from")
      ->type_name("FILE")
      ->required();
  app->add_option("--search", options.strategy,
                  "The strategy and its options, as of hone tune: dqn, or one with recall")
      ->type_name("NAME[:OPTION=VALUE,...]")
      ->capture_default_str();
  app->add_option("--from", options.from, "A state to go on from")->type_name("FILE");
  add_cost(*app, options.cost);
  app->add_option("--epochs", texts->epochs, "Number of passes over the kernels")
      ->type_name("N")
      ->capture_default_str();
  app->add_option("--budget", texts->budget, "Stop when this time is used up, such as 10m")
      ->type_name("TIME");
  app->add_option("--only", texts->only,
                  "Train on the kernels in a file of hone dataset representatives")
      ->type_name("FILE");
  add_excluded_networks(*app, options.exclude_models);
  add_seed(*app, texts->seed);
  return {app, [texts] { return train(*texts); },
          [texts](FileRoles& files) {
            add_database_files("--db", texts->options.db, DatabaseUse::kRead, files);
            add_cost_file(texts->options.cost, files);
            files.read("--from", texts->options.from);
            files.read("--only", texts->only);
            files.written("--output", texts->output);
          }};
}

}  // namespace hone::tool
