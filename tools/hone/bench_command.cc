
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "hone/base/allocation.h"
#include "hone/base/cancel.h"
#include "hone/device.h"
#include "hone/open_model.h"

#include "command.h"
#include "command_files.h"
#include "interrupt.h"
#include "json_text.h"
#include "limits.h"
#include "median.h"
#include "model_file.h"
#include "option_texts.h"
#include "table.h"

namespace hone::tool {
namespace {

struct Kernel {
  std::string name;
  double seconds = 0, flops = 0;
  Limit limit;
};

struct Bench {
  std::vector<Kernel> kernels;  // medians, in the order of execution
  double seconds = 0;           // median of whole runs, without the profile
  // What steps say of their arithmetic is that of the largest shapes, and not known at others.
  bool is_whole = true;
};

Result<std::vector<RunTime>> times_of(Model& model, const std::vector<const void*>& from,
                                      const std::vector<void*>& to, int runs) {
  const std::atomic<bool>& interrupted = listen_for_interrupt();
  std::vector<RunTime> times;
  for (int rest = runs; rest > 0; rest = runs - static_cast<int>(times.size())) {
    HONE_RETURN_IF_ERROR(check_cancelled(&interrupted));
    HONE_RETURN_IF_ERROR(model.run(from, to, rest, times));
  }
  return times;
}

Result<Bench> measure(const std::string& path, Model& model, const Limits& limits, int repeat,
                      uint64_t seed) {
  std::vector<Tensor> outputs;
  std::vector<const void*> from;
  std::vector<void*> to;
  HONE_ASSIGN_OR_RETURN(const std::vector<ModelTensor> wanted, tensors_of_run(path, model));
  HONE_ASSIGN_OR_RETURN(const std::vector<Tensor> inputs, inputs_of(path, wanted, {}, seed));
  for (size_t i = 0; i < model.outputs().size(); ++i) {
    const ModelTensor& output = model.outputs()[i];
    Shape shape = output.shape;
    if (!output.dims.empty()) {
      HONE_ASSIGN_OR_RETURN(shape, model.output_shape(static_cast<int>(i)));
    }
    const AllocatesFor purpose(fmt::format("output '{}'", output.name));
    outputs.emplace_back(output.dtype, std::move(shape));
  }
  for (const Tensor& tensor : inputs) from.push_back(tensor.data());
  for (Tensor& tensor : outputs) to.push_back(tensor.data());

  // The type of the elements that matrix instructions may multiply. Whether they may round those of
  // float32 is not known of a library.
  std::string_view matrix;
  for (const ModelTensor& input : model.inputs()) {
    if (input.dtype == DType::kF16 || input.dtype == DType::kBF16) matrix = dtype_name(input.dtype);
  }
  Bench bench;
  for (size_t i = 0; i < wanted.size(); ++i)
    bench.is_whole = bench.is_whole && wanted[i].shape == model.inputs()[i].shape;
  HONE_RETURN_IF_ERROR(times_of(model, from, to, 3).status());
  HONE_ASSIGN_OR_RETURN(const std::vector<RunTime> runs, times_of(model, from, to, repeat));
  std::vector<double> whole;
  for (const RunTime& run : runs) whole.push_back(run.seconds);
  bench.seconds = median(whole);
  model.profile(true);
  HONE_ASSIGN_OR_RETURN(const std::vector<RunTime> profiled, times_of(model, from, to, repeat));
  std::vector<std::vector<double>> times;
  for (const RunTime& run : profiled) {
    const std::vector<StepTime>& steps = run.steps;
    size_t tasks = 0;  // parts of one task follow each other and have one name
    for (size_t k = 0; k < steps.size(); ++k) {
      const StepTime& step = steps[k];
      const bool first = k == 0 || step.name != steps[k - 1].name;
      if (first && ++tasks > times.size()) {
        const Limit limit = bench.is_whole && step.bytes > 0
                                ? limits.of(step.least_flops, step.bytes, matrix)
                                : Limit();
        bench.kernels.push_back({step.name, 0, step.flops, limit});
        times.emplace_back();
      }
      if (first) times[tasks - 1].push_back(0);
      times[tasks - 1].back() += step.seconds;
    }
  }
  model.profile(false);
  for (size_t k = 0; k < times.size(); ++k) bench.kernels[k].seconds = median(times[k]);
  return bench;
}

// What the times are compared with.
struct Peak {
  double flops = 0;
  int threads = 1;
  std::string text;  // for people
  Limits limits;
};

Result<Peak> find_peak(const Model& model, const CompileOptions& options, const std::string& db) {
  if (const std::string product = model.device(); !product.empty()) {
    HONE_ASSIGN_OR_RETURN(const Device device, find_device_of_driver(product));
    HONE_ASSIGN_OR_RETURN(Limits limits, Limits::load(db, device.name, 1));
    return Peak{device.gpu->flops, 1, fmt::format("{} without matrix instructions", product),
                std::move(limits)};
  }
  const std::string& machine = options.target.machine;
  HONE_ASSIGN_OR_RETURN(const Device host, find_device("host", machine));
  const int wanted = options.target.threads;
  const int threads = wanted > 0 ? std::min(wanted, host.cores) : host.cores;
  Limits limits;  // those of other machines are not measured
  if (machine.empty() && options.records.use_db) {
    HONE_ASSIGN_OR_RETURN(limits, Limits::load(db, host.name, threads));
  }
  return Peak{host.core_flops * threads, threads,
              fmt::format("{} core{} at the nominal clock", threads, threads == 1 ? "" : "s"),
              std::move(limits)};
}

// A bench at one size as a table or as JSON.
struct Report {
  std::string text;
  Json json;
};

Report report_of(const Bench& bench, const Peak& peak) {
  const Limits& limits = peak.limits;
  double all = 0, flops = 0;
  Limit limit;
  for (const Kernel& kernel : bench.kernels) all += kernel.seconds, flops += kernel.flops;
  const auto known = [&](const auto& value) { return bench.is_whole ? Json(value) : Json(); };
  const auto cell = [&](double value, std::string_view unit) {
    return bench.is_whole ? fmt::format("{:.1f}{}", value, unit) : "";
  };
  Json json = {{"seconds", bench.seconds},
               {"kernel_seconds", all},
               {"flops", known(flops)},
               {"threads", peak.threads},
               {"peak_flops", peak.flops}};
  json["kernels"] = Json::array();
  Table table(limits.header({"kernel", "time", "GFLOP/s", "share", "of peak"}));
  const auto rate = [](double f, double s) { return s > 0 ? f / s : 0.0; };
  for (const Kernel& kernel : bench.kernels) {
    const double speed = rate(kernel.flops, kernel.seconds);
    limit.add(kernel.limit);
    table.add(limits.row(
        {shorten(kernel.name, 48), format_seconds(kernel.seconds), cell(speed * 1e-9, ""),
         fmt::format("{:.1f} %", 100 * rate(kernel.seconds, all)),
         cell(100 * speed / peak.flops, " %")},
        kernel.limit, kernel.seconds));
    json["kernels"].push_back({{"name", kernel.name},
                               {"seconds", kernel.seconds},
                               {"flops", known(kernel.flops)},
                               {"limit_seconds", known(kernel.limit.seconds)},
                               {"limit", known(kernel.limit.what)}});
  }
  const double speed = rate(flops, bench.seconds);
  table.add(limits.row({"whole model", format_seconds(bench.seconds), cell(speed * 1e-9, ""), "",
                        cell(100 * speed / peak.flops, " %")},
                       limit, bench.seconds));
  return {fmt::format("{}peak of {}: {:.1f} GFLOP/s (f32)\n", table.text(), peak.text,
                      peak.flops * 1e-9),
          std::move(json)};
}

// The values of one symbol that follow each other: `--shape batch=1,2,8` of a library. They are
// taken out of the shapes.
struct SizeList {
  std::string symbol;
  std::vector<int64_t> values;
};

Result<SizeList> take_sizes(std::map<std::string, Shape>& shapes, const std::string& model) {
  HONE_ASSIGN_OR_RETURN(const bool is_compiled, is_library(model));
  SizeList list;
  const bool any = std::any_of(shapes.begin(), shapes.end(),
                               [](const auto& shape) { return shape.second.size() > 1; });
  if (!is_compiled || !any) return list;
  HONE_ASSIGN_OR_RETURN(const OpenedModel opened, open_model(model));
  std::set<std::string> names, symbols;
  for (const ModelTensor& input : opened.model.inputs()) {
    names.insert(input.name);
    symbols.insert(input.dims.begin(), input.dims.end());
  }
  for (auto shape = shapes.begin(); shape != shapes.end();) {
    const bool is_list =
        shape->second.size() > 1 && !names.contains(shape->first) && symbols.contains(shape->first);
    if (is_list && !list.symbol.empty())
      return invalid("--shape: found lists of '{}' and '{}', expected one list of sizes",
                     list.symbol, shape->first);
    if (is_list) list = {shape->first, {shape->second.begin(), shape->second.end()}};
    shape = is_list ? shapes.erase(shape) : std::next(shape);
  }
  return list;
}

// A model that is compiled for ranges is measured at their largest sizes.
void note_largest_sizes(const Model& model) {
  std::string text;
  for (const ModelTensor& input : model.inputs()) {
    if (!input.dims.empty())
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", input.name, to_string(input.shape));
  }
  fmt::print(stderr, "measured at the largest sizes: {}\n", text);
}

Status run_bench(const ModelRunTexts& texts) {
  HONE_ASSIGN_OR_RETURN(ModelRun options, parse_model_run(texts));
  const std::map<std::string, Shape> given = options.compile.model.shapes;
  HONE_ASSIGN_OR_RETURN(const SizeList sizes,
                        take_sizes(options.compile.model.shapes, texts.model));
  HONE_ASSIGN_OR_RETURN(const bool is_compiled, is_library(texts.model));
  if (!is_compiled) note_new_database(options.compile);
  HONE_ASSIGN_OR_RETURN(OpenedModel file, open_file(texts.model, options.compile));
  HONE_ASSIGN_OR_RETURN(const Peak peak, find_peak(file.model, options.compile, texts.db));
  if (!options.compile.model.ranges.empty()) note_largest_sizes(file.model);
  const auto measured = [&]() -> Result<Report> {
    const Result<Bench> bench =
        measure(texts.model, file.model, peak.limits, options.repeat, options.seed);
    if (!bench.ok()) return in_file(texts.model, bench.status());
    return report_of(*bench, peak);
  };
  if (sizes.symbol.empty()) {
    HONE_ASSIGN_OR_RETURN(const Report report, measured());
    fmt::print("{}", texts.json ? json_text(report.json) : report.text);
    return ok_status();
  }
  const auto set = [&](int64_t value) {
    std::map<std::string, Shape> shapes = given;
    shapes[sizes.symbol] = {value};
    return set_shapes(texts.model, file.model, shapes);
  };
  for (const int64_t value : sizes.values) HONE_RETURN_IF_ERROR(set(value));
  Json json = {{"sizes", Json::array()}};
  for (const int64_t value : sizes.values) {
    HONE_RETURN_IF_ERROR(set(value));
    HONE_ASSIGN_OR_RETURN(Report report, measured());
    const std::string size = fmt::format("{}={}", sizes.symbol, value);
    if (!texts.json) fmt::print("{}\n{}\n", size, report.text);
    report.json["size"] = size;
    json["sizes"].push_back(std::move(report.json));
  }
  if (texts.json) fmt::print("{}", json_text(json));
  return ok_status();
}

}  // namespace

Command bench_command(CLI::App& root) {
  const auto texts = std::make_shared<ModelRunTexts>();
  texts->repeat = "30";
  CLI::App* app = root.add_subcommand(
      "bench", "Time every kernel of a model: time, GFLOP/s, share, percent of the peak");
  add_model(*app, *texts);
  add_model_run_options(*app, *texts, "Number of runs, of which the median time is printed",
                        ", or a list of sizes to measure one after the other: batch=1,2,8");
  return {app,
          [texts] { return run_bench(*texts); },
          [texts](FileRoles& files) { add_model_run_files(*texts, files); },
          {texts, &texts->max_memory}};
}

}  // namespace hone::tool
