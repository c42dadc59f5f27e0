// hone dataset representatives: the tasks to measure first on a new device.
#include <algorithm>

#include "hone/base/hash.h"
#include "hone/dataset.h"

#include "command.h"
#include "command_files.h"
#include "option_texts.h"
#include "table.h"

namespace hone::tool {
namespace {

constexpr int kMostTasks = 1 << 20;

struct Texts {
  std::string db, count = std::to_string(RepresentativeOptions().count), output;
  RepresentativeOptions options;
};

Status choose(const Texts& texts) {
  RepresentativeOptions options = texts.options;
  HONE_ASSIGN_OR_RETURN(options.count, parse_count("--count", texts.count, 1, kMostTasks));
  HONE_ASSIGN_OR_RETURN(const TaskList list, choose_representatives(texts.db, options));
  HONE_RETURN_IF_ERROR(write_task_list(texts.output, list));
  Table table({"task", "kernel", "stands for", "similarity"}, 2);
  int tasks = 0;
  double similarity = 0;
  for (const ListedTask& task : list.tasks) {
    table.add({hash_hex(task.key), shorten(task.kernel_class, 50), std::to_string(task.cluster),
               fmt::format("{:.3f}", task.similarity)});
    tasks += task.cluster;
    similarity += task.cluster * task.similarity;
  }
  fmt::print("{}wrote {}: {} of {} tasks, mean similarity {:.3f}\n", table.text(), texts.output,
             list.tasks.size(), tasks, similarity / std::max(tasks, 1));
  return ok_status();
}

}  // namespace

Command dataset_representatives_command(CLI::App& dataset) {
  const auto texts = std::make_shared<Texts>();
  CLI::App* app = dataset.add_subcommand(
      "representatives", "Choose a few tasks that represent all, to be measured on a new device");
  add_db(*app, texts->db);
  add_measured_device(*app, texts->options.device);
  app->add_option("--count", texts->count, "Number of tasks")
      ->type_name("N")
      ->capture_default_str();
  add_excluded_networks(*app, texts->options.exclude_models);
  app->add_option(
         "-o,--output", texts->output,
         "The list to write, for --only of dataset make and train, and for --except of eval")
      ->type_name("FILE")
      ->required();
  app->footer(
      "Tasks are compared by Spearman's rank correlation of their features and divided into\n"
      "clusters (k-medoids); the task in the middle of each is chosen.");
  return {app, [texts] { return choose(*texts); },
          [texts](FileRoles& files) {
            add_database_files("--db", texts->db, DatabaseUse::kRead, files);
            files.written("--output", texts->output);
          }};
}

}  // namespace hone::tool
