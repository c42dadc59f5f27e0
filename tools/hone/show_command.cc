#include <algorithm>

#include "hone/base/file.h"
#include "hone/base/hash.h"
#include "hone/inspect.h"

#include "build_report.h"
#include "command.h"
#include "command_files.h"
#include "interrupt.h"
#include "json_text.h"
#include "limits.h"
#include "option_texts.h"
#include "size_report.h"
#include "table.h"

namespace hone::tool {
namespace {

struct Options {
  std::string model, after, dot, max_memory;
  bool passes = false;
  BuildOptionTexts build;
  bool json = false;
};

constexpr double kMebibyte = 1 << 20;

void print_text(const Inspection& model, const Limits& limits) {
  Table table(
      limits.header({"task", "first node", "kernel", "result", "times", "FLOPs", "bytes", "time"}),
      4);
  double seconds = 0;
  for (size_t i = 0; i < model.distinct.size(); ++i) {
    const TaskSummary& task = model.distinct[i].summary;
    const double time = task.known_seconds();
    seconds += time * task.multiplicity;
    table.add(
        limits.row({std::to_string(i + 1), shorten(task.name, 32), shorten(task.kernel_class, 40),
                    to_string(model.distinct[i].result), std::to_string(task.multiplicity),
                    format_count(task.flops), format_count(task.bytes),
                    (task.seconds > 0 ? "" : "~") + format_seconds(time)},
                   limits.of(task), task.seconds));
  }
  fmt::print("{}\n{} nodes, {} tasks, {} distinct\n", table.text(), model.nodes, model.tasks,
             model.distinct.size());
  fmt::print("{:.3f} GFLOP, {:.2f} MiB of weights, at most {:.2f} MiB of intermediate tensors\n",
             model.flops * 1e-9, static_cast<double>(model.weight_bytes) / kMebibyte,
             static_cast<double>(model.arena_bytes) / kMebibyte);
  fmt::print("all tasks: ~{} (~: predicted, else measured)\n", format_seconds(seconds));
  std::vector<TaskSummary> tasks;
  for (const InspectedTask& task : model.distinct) tasks.push_back(task.summary);
  const std::string sizes = sizes_table(tasks);
  if (!sizes.empty())
    fmt::print(
        "\nkernels whose sizes vary, with their times at the smallest and the largest:\n{}{}",
        sizes, sizes_line(tasks));
}

// `passes`: the rules of those that changed the graph, by its name, if they are asked for.
void print_json(const Inspection& model, const Limits& limits, const Json& passes) {
  Json json = {{"nodes", model.nodes},
               {"tasks", model.tasks},
               {"distinct_tasks", model.distinct.size()},
               {"flops", model.flops},
               {"weight_bytes", model.weight_bytes},
               {"arena_bytes", model.arena_bytes}};
  if (!passes.is_null()) {
    json["passes"] = Json::array();
    for (const std::string& name : pass_names()) {
      const bool changed = passes.contains(name);
      json["passes"].push_back({{"pass", name},
                                {"changed", changed},
                                {"rules", changed ? passes[name] : Json::object()}});
    }
  }
  json["kernels"] = Json::array();
  for (size_t i = 0; i < model.distinct.size(); ++i) {
    Json kernel = to_json(model.distinct[i].summary, limits);
    kernel["task"] = i + 1;
    kernel["shape"] = model.distinct[i].result;
    json["kernels"].push_back(std::move(kernel));
  }
  fmt::print("{}", json_text(json));
}

// The graph's text after each pass; a pass that changed nothing leaves that of the one before it.
class History {
 public:
  void add(const std::string& pass, const std::string& graph) {
    changes_.emplace_back(pass, graph);
  }

  [[nodiscard]] Result<std::string> after(const std::string& pass) const {
    std::vector<std::string> order = pass_names();
    order.insert(order.begin(), "import");
    const auto end = std::find(order.begin(), order.end(), pass);
    if (end == order.end())
      return invalid("--after: no pass is named '{}', expected one of {}", pass, join_names(order));
    std::string text;
    for (const auto& [name, graph] : changes_) {
      if (std::find(order.begin(), order.end(), name) <= end) text = graph;
    }
    return text;
  }

 private:
  std::vector<std::pair<std::string, std::string>> changes_;
};

Status show(const Options& options) {
  InspectOptions inspect_options;
  HONE_ASSIGN_OR_RETURN(inspect_options.compile, parse_build_options(options.build));
  note_new_database(inspect_options.compile);
  inspect_options.compile.interrupted = &listen_for_interrupt();
  History history;
  Json passes = Json::object();
  if (!options.after.empty()) {
    HONE_RETURN_IF_ERROR(history.after(options.after).status());
    inspect_options.on_change = [&](const PassChange& change) {
      history.add(change.pass, change.graph);
    };
  } else if (options.passes && options.json) {
    inspect_options.on_change = [&](const PassChange& change) {
      passes[change.pass] = change.rules;
    };
  } else if (options.passes) {
    inspect_options.on_change = [](const PassChange& change) {
      fmt::print("after {}:\n{}\n", change.pass, change.graph);
    };
  }
  inspect_options.dot = !options.dot.empty();
  HONE_ASSIGN_OR_RETURN(const Inspection model, inspect(options.model, inspect_options));
  HONE_ASSIGN_OR_RETURN(const Limits limits, Limits::load(inspect_options.compile));
  if (!options.dot.empty()) {
    FileRoles files;
    for (const std::string& file : model.files) files.read("the model", file);
    files.written("--dot", options.dot);
    HONE_RETURN_IF_ERROR(files.check());
    HONE_RETURN_IF_ERROR(write_file_atomic(options.dot, model.dot));
  }
  if (options.json) {
    print_json(model, limits, options.passes ? passes : Json());
  } else if (!options.after.empty()) {
    HONE_ASSIGN_OR_RETURN(const std::string text, history.after(options.after));
    fmt::print("{}", text);
  } else {
    if (!options.passes) fmt::print("{}\n", model.graph);
    print_text(model, limits);
  }
  return ok_status();
}

}  // namespace

Command show_command(CLI::App& root) {
  const auto options = std::make_shared<Options>();
  CLI::App* app = root.add_subcommand(
      "show",
      "Show a model's graph after its passes, and the tasks that it becomes; where shapes\nvary, "
      "which schedules run at which sizes");
  app->add_option("model", options->model, "The ONNX model")->required()->type_name("MODEL");
  app->add_flag("--passes", options->passes,
                "Print the graph as imported and after each pass that changed it; with --json, the "
                "passes that changed it and how often each of their rules did");
  app->add_option("--after", options->after,
                  "Print the graph as it is after this pass only; import: before all of them")
      ->type_name("PASS")
      ->excludes("--passes");
  app->add_option("--dot", options->dot, "Write a drawing of the tasks in Graphviz's language")
      ->type_name("FILE");
  add_task_options(*app, options->build);
  add_own_memory(*app, options->max_memory);
  add_json(*app, options->json);
  app->get_option("--json")->excludes("--after");
  return {app,
          [options] { return show(*options); },
          [options](FileRoles& files) {
            files.read("MODEL", options->model);
            add_build_files(options->build, DatabaseUse::kRead, files);
            if (!options->dot.empty()) files.written("--dot", options->dot);
          },
          {options, &options->max_memory}};
}

}  // namespace hone::tool
