
#include <algorithm>
#include <cmath>

#include "hone/base/cancel.h"
#include "hone/base/clock.h"
#include "hone/target/target.h"

#include "command.h"
#include "interrupt.h"
#include "json_text.h"
#include "model_file.h"
#include "option_texts.h"
#include "table.h"

namespace hone::tool {
namespace {

struct BenchOptions {
  std::string model;
  std::string repeat = "30";
  std::string threads = "0";
  std::string seed = "0";
  std::vector<std::string> shapes, bind;
  std::string db;
  bool json = false;
};

struct Kernel {
  std::string name;
  double seconds = 0, flops = 0;
};

struct Bench {
  std::vector<Kernel> kernels;  // medians, in the order of execution
  double seconds = 0;           // median of whole runs, without the profile
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Result<Bench> measure(codegen::LoadedModel& model, int repeat, uint64_t seed) {
  std::vector<Tensor> inputs, outputs;
  std::vector<const void*> from;
  std::vector<void*> to;
  for (const codegen::ModelTensor& input : model.inputs())
    inputs.push_back(random_input(input, seed + inputs.size()));
  for (const codegen::ModelTensor& output : model.outputs())
    outputs.emplace_back(output.dtype, output.shape);
  for (const Tensor& tensor : inputs) from.push_back(tensor.data());
  for (Tensor& tensor : outputs) to.push_back(tensor.data());

  Bench bench;
  for (int i = 0; i < 3; ++i) HONE_RETURN_IF_ERROR(model.run(from, to));
  std::vector<double> whole;
  const std::atomic<bool>& interrupted = listen_for_interrupt();
  for (int i = 0; i < repeat; ++i) {
    HONE_RETURN_IF_ERROR(check_cancelled(&interrupted));
    const double start = real_clock().now_seconds();
    HONE_RETURN_IF_ERROR(model.run(from, to));
    whole.push_back(real_clock().now_seconds() - start);
  }
  bench.seconds = median(std::move(whole));
  model.profile(true);
  std::vector<std::vector<double>> times;
  for (int i = 0; i < repeat; ++i) {
    HONE_RETURN_IF_ERROR(check_cancelled(&interrupted));
    HONE_RETURN_IF_ERROR(model.run(from, to));
    const std::vector<codegen::StepTime> steps = model.step_times();
    times.resize(steps.size());
    for (size_t k = 0; k < steps.size(); ++k) times[k].push_back(steps[k].seconds);
    if (i > 0) continue;
    for (const codegen::StepTime& step : steps) bench.kernels.push_back({step.name, 0, step.flops});
  }
  model.profile(false);
  for (size_t k = 0; k < times.size(); ++k) bench.kernels[k].seconds = median(std::move(times[k]));
  return bench;
}

void print(const Bench& bench, double peak, int threads, bool as_json) {
  double all = 0, flops = 0;
  for (const Kernel& kernel : bench.kernels) all += kernel.seconds, flops += kernel.flops;
  Json json = {{"seconds", bench.seconds},
               {"kernel_seconds", all},
               {"flops", flops},
               {"threads", threads},
               {"peak_flops", peak}};
  json["kernels"] = Json::array();
  Table table({"kernel", "time", "GFLOP/s", "share", "of peak"});
  const auto rate = [](double f, double s) { return s > 0 ? f / s : 0.0; };
  for (const Kernel& kernel : bench.kernels) {
    const double speed = rate(kernel.flops, kernel.seconds);
    table.add({shorten(kernel.name, 48), format_seconds(kernel.seconds),
               fmt::format("{:.1f}", speed * 1e-9),
               fmt::format("{:.1f} %", 100 * rate(kernel.seconds, all)),
               fmt::format("{:.1f} %", 100 * speed / peak)});
    json["kernels"].push_back(
        {{"name", kernel.name}, {"seconds", kernel.seconds}, {"flops", kernel.flops}});
  }
  const double speed = rate(flops, bench.seconds);
  table.add({"whole model", format_seconds(bench.seconds), fmt::format("{:.1f}", speed * 1e-9), "",
             fmt::format("{:.1f} %", 100 * speed / peak)});
  if (as_json) {
    fmt::print("{}", json_text(json));
  } else {
    fmt::print("{}peak of {} core{} at the nominal clock: {:.1f} GFLOP/s (f32)\n", table.text(),
               threads, threads == 1 ? "" : "s", peak * 1e-9);
  }
}

Status run_bench(const BenchOptions& options) {
  ModelFileOptions file_options;
  file_options.db = options.db;
  HONE_ASSIGN_OR_RETURN(file_options.threads, parse_threads(options.threads));
  HONE_ASSIGN_OR_RETURN(const uint64_t seed, parse_seed(options.seed));
  HONE_ASSIGN_OR_RETURN(const int repeat, parse_count("--repeat", options.repeat, 1, 1000000));
  HONE_ASSIGN_OR_RETURN(file_options.shapes, parse_shapes(options.shapes));
  HONE_ASSIGN_OR_RETURN(file_options.bind, parse_tensors("--bind", options.bind));
  HONE_ASSIGN_OR_RETURN(ModelFile file, open_model_file(options.model, file_options));
  HONE_ASSIGN_OR_RETURN(const Bench bench, measure(file.model, repeat, seed));
  const target::Target& host = target::host();
  const int threads =
      file_options.threads > 0 ? std::min(file_options.threads, host.cores) : host.cores;
  const double peak = 2.0 * host.fma_per_cycle * host.lanes(4) * host.ghz * 1e9 * threads;
  print(bench, peak, threads, options.json);
  return ok_status();
}

}  // namespace

Command bench_command(CLI::App& root) {
  const auto options = std::make_shared<BenchOptions>();
  CLI::App* app = root.add_subcommand(
      "bench", "Time every kernel of a model: time, GFLOP/s, share, percent of the peak");
  app->add_option("model", options->model,
                  "The artifact (.so) or ONNX model (.onnx), which is compiled first")
      ->required()
      ->type_name("MODEL");
  app->add_option("--repeat", options->repeat, "Runs to take the median of")
      ->type_name("N")
      ->capture_default_str();
  add_threads(*app, options->threads);
  add_seed(*app, options->seed);
  add_shapes(*app, options->shapes);
  add_bind(*app, options->bind);
  add_db(*app, options->db);
  add_json(*app, options->json);
  return {app, [options] { return run_bench(*options); }};
}

}  // namespace hone::tool
