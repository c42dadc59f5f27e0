#include "hone/base/file.h"
#include "hone/base/hash.h"
#include "hone/device.h"
#include "hone/explain.h"

#include "build_report.h"
#include "code_text.h"
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
  std::string model, task, steps, max_memory;
  bool best = false, use_default = false, measure = false, no_measure = false, code = false,
       passes = false;
  BuildOptionTexts build;
  bool json = false;
};

std::string indented(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (end > 0) result += fmt::format("  {}\n", text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

constexpr size_t kShownInstructions = 40;

std::string lines_text(const InnerLoop& loop, bool all) {
  std::string text;
  const size_t shown = all ? loop.text.size() : std::min(loop.text.size(), kShownInstructions);
  for (size_t i = 0; i < shown; ++i) text += fmt::format("    {}\n", loop.text[i]);
  if (shown < loop.text.size())
    text += fmt::format("    and {} more (--code prints all)\n", loop.text.size() - shown);
  return text;
}

// The code of a phase on a GPU.
std::string source_text(const InnerLoop& loop, bool all) {
  return fmt::format("code of {}:\n{}\n", loop.symbol, lines_text(loop, all));
}

std::string loop_text(const InnerLoop& loop, const Device& device, bool all) {
  const InstructionMix& mix = loop.mix;
  std::string text = fmt::format("{} of {}: {} instructions in {} bytes\n",
                                 loop.is_loop ? "inner loop" : "no loop in the code", loop.symbol,
                                 mix.all, loop.bytes);
  Table table({"fma", "arithmetic", "load", "store", "broadcast", "shuffle", "prefetch", "scalar"},
              0);
  table.add({std::to_string(mix.fma), std::to_string(mix.arithmetic), std::to_string(mix.load),
             std::to_string(mix.store), std::to_string(mix.broadcast), std::to_string(mix.shuffle),
             std::to_string(mix.prefetch), std::to_string(mix.scalar)});
  text += indented(table.text());
  text +=
      fmt::format("  vector registers: {} of {}, up to {} bits; {} reads and writes of the stack\n",
                  loop.vector_registers, device.vector_registers, loop.vector_bits, loop.spills);
  text += fmt::format("  cycles an iteration: at least {:.1f} (ports), {}\n", loop.port_cycles,
                      loop.mca_cycles > 0 ? fmt::format("{:.1f} (LLVM MCA)", loop.mca_cycles)
                                          : "LLVM MCA has no model");
  return text + "  machine code:\n" + lines_text(loop, all) + "\n";
}

std::string_view source_name(CountedLoop::Source source) {
  switch (source) {
    case CountedLoop::Source::kCode: return "machine code";
    case CountedLoop::Source::kProgram: return "program";
    default: return "assumed";
  }
}

// The instructions that a run of a phase executes, and where.
std::string counts_text(const CountedCode& counted) {
  if (!counted.failure.empty())
    return fmt::format("executed instructions of {}: not counted, {}\n\n", counted.symbol,
                       counted.failure);
  const InstructionMix& mix = counted.executed;
  std::string text = fmt::format(
      "executed instructions of {}: {} for {} tile{}, {}\n", counted.symbol, mix.all, counted.tiles,
      counted.tiles == 1 ? "" : "s",
      counted.exact() ? "exact"
                      : fmt::format("not exact: {} branches are assumed to go straight on, and "
                                    "trip counts of which the machine code does not tell are "
                                    "those of the program",
                                    counted.unknown_branches));
  Table table({"fma", "arithmetic", "load", "store", "broadcast", "shuffle", "prefetch", "scalar",
               "branch"},
              0);
  std::vector<std::string> row;
  for (const int64_t part : {mix.fma, mix.arithmetic, mix.load, mix.store, mix.broadcast,
                             mix.shuffle, mix.prefetch, mix.scalar, mix.branch})
    row.push_back(std::to_string(part));
  table.add(std::move(row));
  text += indented(table.text());
  if (counted.loops.empty()) return text + "\n";
  Table loops({"loop", "entered", "iterations", "instructions", "known by", "cycles", "MCA"});
  for (const CountedLoop& loop : counted.loops) {
    const std::string name = loop.name.empty() ? "(no loop of the program)" : loop.name;
    loops.add({std::string(2 * static_cast<size_t>(loop.depth), ' ') + name,
               std::to_string(loop.entries), std::to_string(loop.iterations),
               std::to_string(loop.instructions), std::string(source_name(loop.source)),
               fmt::format("{:.1f}", loop.cycles), fmt::format("{:.1f}", loop.mca_cycles)});
  }
  return text + indented(loops.text()) + "\n";
}

// Bytes that go into each cache from the one behind it.
std::string traffic_text(const Explanation& e, const Device& device) {
  std::vector<std::string> header = {"stage", "cycles a body", "registers", "compute"};
  for (const DeviceCache& cache : device.caches)
    header.push_back(fmt::format("bytes to L{}", cache.level));
  Table table(std::move(header));
  const double cycle = 1e-9 / device.ghz;
  const auto add = [&](std::vector<std::string> row, const std::vector<std::string>& rest) {
    row.insert(row.end(), rest.begin(), rest.end());
    row.resize(4 + device.caches.size());
    table.add(std::move(row));
  };
  for (const ExplainedStage& stage : e.stages) {
    std::vector<std::string> bytes;
    for (const double amount : stage.bytes) bytes.push_back(format_count(amount));
    add({stage.name, fmt::format("{:.1f}", stage.body_cycles),
         fmt::format("{:.0f}", stage.registers), format_seconds(stage.compute_cycles * cycle)},
        bytes);
  }
  std::vector<std::string> seconds;
  for (const double amount : e.level_seconds) seconds.push_back(format_seconds(amount));
  add({"time of one core", "", "", format_seconds(e.compute_seconds)}, seconds);
  return table.text();
}

// The launches of a GPU, and what each limit alone would take.
std::string launches_text(const Explanation& e) {
  Table table({"launch", "blocks", "threads", "registers", "shared", "resident", "arithmetic",
               "load units", "L2", "waiting", "memory", "predicted", "limit"});
  for (const ExplainedLaunch& launch : e.launches) {
    table.add({launch.name, format_count(launch.blocks), fmt::format("{:.0f}", launch.threads),
               fmt::format("{:.0f}", launch.registers), format_count(launch.shared_bytes),
               fmt::format("{:.0f}", launch.resident_blocks),
               format_seconds(launch.arithmetic_seconds), format_seconds(launch.units_seconds),
               format_seconds(launch.l2_seconds), format_seconds(launch.latency_seconds),
               format_seconds(launch.memory_seconds), format_seconds(launch.seconds),
               std::string(launch.limit)});
  }
  return table.text();
}

std::string passes_text(const Explanation& e) {
  std::string text = fmt::format("loop program before the passes:\n{}\n", indented(e.raw_program));
  for (const ExplainedPass& pass : e.passes) {
    const std::string time = format_seconds(pass.seconds);
    text += pass.program.empty() ? fmt::format("{} changed nothing in {}\n\n", pass.name, time)
                                 : fmt::format("after {}, {} ({}):\n{}\n", pass.name, time,
                                               pass.reason, indented(pass.program));
  }
  return text;
}

std::string times_text(const Explanation& e, const Limits& limits) {
  std::string text = fmt::format("predicted: {}", format_seconds(e.task.predicted_seconds));
  if (e.launches.empty())
    text += fmt::format(" on {} thread{}", e.threads, e.threads == 1 ? "" : "s");
  text += '\n';
  const double seconds = e.measured ? e.measured->seconds : 0;
  if (e.measured && !e.measured->failure.empty()) {
    text += fmt::format("measured now: none, it ended as {}\n", e.measured->failure);
  } else if (e.measured) {
    text += fmt::format("measured{}: {} ({} to {}, {} samples{}), {:.1f} GFLOP/s\n",
                        e.measured->now ? " now" : " earlier", format_seconds(seconds),
                        format_seconds(e.measured->low), format_seconds(e.measured->high),
                        e.measured->samples, e.measured->verified ? "" : ", not verified",
                        e.task.flops / seconds * 1e-9);
  } else {
    text += "measured: not yet with this schedule\n";
  }
  const Limit limit = limits.of(e.task);
  if (limit.seconds > 0) {
    text += fmt::format("limit: {} by {}", format_seconds(limit.seconds), limit.what);
    text += seconds > 0 ? fmt::format(", {:.0f} % reached\n", 100 * limit.seconds / seconds) : "\n";
  }
  return text;
}

void print_text(const Explanation& e, const Device& device, const Limits& limits, bool all_code) {
  fmt::print("task {}: {} ({}), {} in the model, {} FLOPs, {} bytes\n\n", hash_hex(e.key),
             e.task.kernel_class, e.task.name, e.task.multiplicity, format_count(e.task.flops),
             format_count(e.task.bytes));
  const std::string from = e.task.from.empty() ? "" : " from " + e.task.from;
  fmt::print("schedule ({}{}):\n{}\n", e.task.source, from, indented(e.task.steps));
  if (e.passes.empty()) {
    fmt::print("loop program:\n{}\n", indented(e.program));
  } else {
    fmt::print("{}", passes_text(e));
  }
  if (!e.launches.empty()) {
    for (const InnerLoop& loop : e.loops) fmt::print("{}", source_text(loop, all_code));
    if (e.code) fmt::print("{}\n\n", describe(*e.code));
    fmt::print("analysed:\n{}\n{}", launches_text(e), times_text(e, limits));
    return;
  }
  fmt::print(
      "machine code: {} bytes, {} bytes of scratch a thread; register buffers take up to {} of {} "
      "registers\n\n",
      e.text_bytes, e.scratch_bytes, e.registers_needed, device.vector_registers);
  for (const InnerLoop& loop : e.loops) fmt::print("{}", loop_text(loop, device, all_code));
  for (const CountedCode& counted : e.counts) fmt::print("{}", counts_text(counted));
  fmt::print("analysed:\n{}\n{}", traffic_text(e, device), times_text(e, limits));
  if (!e.task.sizes.empty()) fmt::print("\n{}", sizes_text(e.task));
}

void add(const InstructionMix& mix, Json& json) {
  json["instructions"] = mix.all;
  json["fma"] = mix.fma;
  json["arithmetic"] = mix.arithmetic;
  json["load"] = mix.load;
  json["store"] = mix.store;
  json["broadcast"] = mix.broadcast;
  json["shuffle"] = mix.shuffle;
  json["prefetch"] = mix.prefetch;
  json["scalar"] = mix.scalar;
}

Json to_json(const InnerLoop& loop) {
  Json json = {{"symbol", loop.symbol}, {"is_loop", loop.is_loop}, {"bytes", loop.bytes}};
  add(loop.mix, json);
  json["vector_registers"] = loop.vector_registers;
  json["vector_bits"] = loop.vector_bits;
  json["spills"] = loop.spills;
  json["port_cycles"] = loop.port_cycles;
  json["mca_cycles"] = loop.mca_cycles;
  json["text"] = loop.text;
  return json;
}

Json to_json(const CountedCode& counted) {
  Json json = {{"symbol", counted.symbol},        {"tiles", counted.tiles},
               {"exact", counted.exact()},        {"unknown_branches", counted.unknown_branches},
               {"failure", counted.failure},      {"cycles", counted.cycles},
               {"mca_cycles", counted.mca_cycles}};
  add(counted.executed, json);
  json["branch"] = counted.executed.branch;
  json["loops"] = Json::array();
  for (const CountedLoop& loop : counted.loops) {
    json["loops"].push_back({{"name", loop.name},
                             {"depth", loop.depth},
                             {"entries", loop.entries},
                             {"iterations", loop.iterations},
                             {"instructions", loop.instructions},
                             {"source", source_name(loop.source)},
                             {"cycles", loop.cycles},
                             {"mca_cycles", loop.mca_cycles}});
  }
  return json;
}

Json to_json(const ExplainedLaunch& launch) {
  return {{"name", launch.name},
          {"blocks", launch.blocks},
          {"threads", launch.threads},
          {"registers", launch.registers},
          {"shared_bytes", launch.shared_bytes},
          {"resident_blocks", launch.resident_blocks},
          {"memory_bytes", launch.memory_bytes},
          {"arithmetic_seconds", launch.arithmetic_seconds},
          {"units_seconds", launch.units_seconds},
          {"l2_seconds", launch.l2_seconds},
          {"latency_seconds", launch.latency_seconds},
          {"memory_seconds", launch.memory_seconds},
          {"seconds", launch.seconds},
          {"limit", launch.limit}};
}

void print_json(const Explanation& e, const Limits& limits) {
  Json json = to_json(e.task, limits);
  json["from"] = e.task.from;
  json["task"] = hash_hex(e.key);
  json["steps"] = e.task.steps;
  json["program"] = e.program;
  for (const ExplainedPass& pass : e.passes) {
    json["passes"].push_back({{"name", pass.name},
                              {"reason", pass.reason},
                              {"seconds", pass.seconds},
                              {"changed", !pass.program.empty()},
                              {"program", pass.program}});
  }
  json["threads"] = e.threads;
  json["text_bytes"] = e.text_bytes;
  json["scratch_bytes"] = e.scratch_bytes;
  json["registers_needed"] = e.registers_needed;
  json["loops"] = Json::array();
  for (const InnerLoop& loop : e.loops) json["loops"].push_back(to_json(loop));
  json["counts"] = Json::array();
  for (const CountedCode& counted : e.counts) json["counts"].push_back(to_json(counted));
  json["stages"] = Json::array();
  for (const ExplainedStage& stage : e.stages) {
    json["stages"].push_back({{"name", stage.name},
                              {"body_cycles", stage.body_cycles},
                              {"registers", stage.registers},
                              {"compute_cycles", stage.compute_cycles},
                              {"bytes", stage.bytes}});
  }
  json["code"] = code_json(e.code);
  json["launches"] = Json::array();
  for (const ExplainedLaunch& launch : e.launches) json["launches"].push_back(to_json(launch));
  json["measured"] = nullptr;
  if (e.measured) {
    json["measured"] = {{"seconds", e.measured->seconds},   {"low", e.measured->low},
                        {"high", e.measured->high},         {"samples", e.measured->samples},
                        {"verified", e.measured->verified}, {"now", e.measured->now},
                        {"failure", e.measured->failure}};
  }
  fmt::print("{}", json_text(json));
}

Status run(const Options& options) {
  ExplainOptions parsed;
  HONE_ASSIGN_OR_RETURN(parsed.compile, parse_build_options(options.build));
  parsed.compile.interrupted = &listen_for_interrupt();
  parsed.task = options.task;
  parsed.passes = options.passes;
  if (options.measure) parsed.measure = ExplainOptions::Measure::kAlways;
  if (options.no_measure) parsed.measure = ExplainOptions::Measure::kNever;
  if (options.best) parsed.schedule = ExplainOptions::Schedule::kBest;
  if (options.use_default) parsed.schedule = ExplainOptions::Schedule::kDefault;
  if (!options.steps.empty()) {
    parsed.schedule = ExplainOptions::Schedule::kGiven;
    parsed.steps = options.steps;
    if (options.steps.starts_with('@')) {
      HONE_ASSIGN_OR_RETURN(parsed.steps, read_file(options.steps.substr(1)));
    }
  }
  HONE_ASSIGN_OR_RETURN(const Device device, find_device(parsed.compile.target.device));
  HONE_ASSIGN_OR_RETURN(const Limits limits, Limits::load(parsed.compile));
  HONE_ASSIGN_OR_RETURN(const Explanation explanation, explain(options.model, parsed));
  if (options.json) {
    print_json(explanation, limits);
  } else {
    print_text(explanation, device, limits, options.code);
  }
  return ok_status();
}

}  // namespace

Command explain_command(CLI::App& root) {
  const auto options = std::make_shared<Options>();
  CLI::App* app = root.add_subcommand(
      "explain",
      "Show the effect of a schedule on a task: loops, machine code, memory traffic, time; where\n"
      "shapes vary, which schedules run at which sizes");
  app->add_option("model", options->model,
                  "The ONNX model of the task; if missing, the task is from the database")
      ->type_name("MODEL");
  app->add_option("--task", options->task,
                  "The task: its number in 'hone show', or its key, also in 'hone db show'")
      ->required()
      ->type_name("N|KEY");
  app->add_option(
         "--schedule", options->steps,
         "Steps with semicolons between, or @FILE with one step a line; default: the one\n"
         "that compile uses, which is the best stored, a transferred or the best predicted one")
      ->type_name("STEPS");
  app->add_flag("--best", options->best, "Use the best stored schedule, and fail if there is none")
      ->excludes("--schedule");
  app->add_flag("--default", options->use_default,
                "Use the default schedule, which follows simple rules")
      ->excludes("--schedule")
      ->excludes("--best");
  app->add_flag("--measure", options->measure,
                "Run the kernel now; default: only if the database has no time for this schedule\n"
                "and the device is this machine");
  app->add_flag("--no-measure", options->no_measure, "Do not run the kernel")
      ->excludes("--measure");
  app->add_flag(
      "--passes", options->passes,
      "Print the loop program before and after each pass that changed it, and the time it took");
  app->add_flag("--code", options->code, "Print all instructions of the inner loops");
  add_task_options(*app, options->build);
  add_own_memory(*app, options->max_memory);
  add_json(*app, options->json);
  return {app,
          [options] { return run(*options); },
          [options](FileRoles& files) {
            files.read("MODEL", options->model);
            if (options->steps.starts_with('@')) files.read("--schedule", options->steps.substr(1));
            add_build_files(options->build, DatabaseUse::kRead, files);
          },
          {options, &options->max_memory}};
}

}  // namespace hone::tool
