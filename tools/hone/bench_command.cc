
#include <algorithm>
#include <cmath>

#include "hone/base/allocation.h"
#include "hone/base/cancel.h"
#include "hone/base/clock.h"
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
};

Result<Bench> measure(Model& model, const Limits& limits, int repeat, uint64_t seed) {
  std::vector<Tensor> outputs;
  std::vector<const void*> from;
  std::vector<void*> to;
  HONE_ASSIGN_OR_RETURN(const std::vector<Tensor> inputs, inputs_of(model.inputs(), {}, seed));
  for (const ModelTensor& output : model.outputs()) {
    const AllocatesFor purpose(fmt::format("output '{}'", output.name));
    outputs.emplace_back(output.dtype, output.shape);
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
  for (int i = 0; i < 3; ++i) HONE_RETURN_IF_ERROR(model.run(from, to));
  std::vector<double> whole;
  const std::atomic<bool>& interrupted = listen_for_interrupt();
  for (int i = 0; i < repeat; ++i) {
    HONE_RETURN_IF_ERROR(check_cancelled(&interrupted));
    const double start = real_clock().now_seconds();
    HONE_RETURN_IF_ERROR(model.run(from, to));
    whole.push_back(real_clock().now_seconds() - start);
  }
  bench.seconds = median(whole);
  model.profile(true);
  std::vector<std::vector<double>> times;
  for (int i = 0; i < repeat; ++i) {
    HONE_RETURN_IF_ERROR(check_cancelled(&interrupted));
    HONE_RETURN_IF_ERROR(model.run(from, to));
    const std::vector<StepTime> steps = model.step_times();
    size_t tasks = 0;  // parts of one task follow each other and have one name
    for (size_t k = 0; k < steps.size(); ++k) {
      const StepTime& step = steps[k];
      const bool first = k == 0 || step.name != steps[k - 1].name;
      if (first && ++tasks > times.size()) {
        const Limit limit =
            step.bytes > 0 ? limits.of(step.least_flops, step.bytes, matrix) : Limit();
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
  HONE_ASSIGN_OR_RETURN(const Device host, find_device("host"));
  const int wanted = options.target.threads;
  const int threads = wanted > 0 ? std::min(wanted, host.cores) : host.cores;
  HONE_ASSIGN_OR_RETURN(Limits limits, Limits::load(db, host.name, threads));
  return Peak{host.core_flops * threads, threads,
              fmt::format("{} core{} at the nominal clock", threads, threads == 1 ? "" : "s"),
              std::move(limits)};
}

void print(const Bench& bench, const Peak& peak, bool as_json) {
  const Limits& limits = peak.limits;
  double all = 0, flops = 0;
  Limit limit;
  for (const Kernel& kernel : bench.kernels) all += kernel.seconds, flops += kernel.flops;
  Json json = {{"seconds", bench.seconds},
               {"kernel_seconds", all},
               {"flops", flops},
               {"threads", peak.threads},
               {"peak_flops", peak.flops}};
  json["kernels"] = Json::array();
  Table table(limits.header({"kernel", "time", "GFLOP/s", "share", "of peak"}));
  const auto rate = [](double f, double s) { return s > 0 ? f / s : 0.0; };
  for (const Kernel& kernel : bench.kernels) {
    const double speed = rate(kernel.flops, kernel.seconds);
    limit.add(kernel.limit);
    table.add(limits.row({shorten(kernel.name, 48), format_seconds(kernel.seconds),
                          fmt::format("{:.1f}", speed * 1e-9),
                          fmt::format("{:.1f} %", 100 * rate(kernel.seconds, all)),
                          fmt::format("{:.1f} %", 100 * speed / peak.flops)},
                         kernel.limit, kernel.seconds));
    json["kernels"].push_back({{"name", kernel.name},
                               {"seconds", kernel.seconds},
                               {"flops", kernel.flops},
                               {"limit_seconds", kernel.limit.seconds},
                               {"limit", kernel.limit.what}});
  }
  const double speed = rate(flops, bench.seconds);
  table.add(
      limits.row({"whole model", format_seconds(bench.seconds), fmt::format("{:.1f}", speed * 1e-9),
                  "", fmt::format("{:.1f} %", 100 * speed / peak.flops)},
                 limit, bench.seconds));
  if (as_json) {
    fmt::print("{}", json_text(json));
  } else {
    fmt::print("{}peak of {}: {:.1f} GFLOP/s (f32)\n", table.text(), peak.text, peak.flops * 1e-9);
  }
}

Status run_bench(const ModelRunTexts& texts) {
  HONE_ASSIGN_OR_RETURN(const ModelRun options, parse_model_run(texts));
  HONE_ASSIGN_OR_RETURN(OpenedModel file, open_file(texts.model, options.compile));
  HONE_ASSIGN_OR_RETURN(const Peak peak, find_peak(file.model, options.compile, texts.db));
  HONE_ASSIGN_OR_RETURN(const Bench bench,
                        measure(file.model, peak.limits, options.repeat, options.seed));
  print(bench, peak, texts.json);
  return ok_status();
}

}  // namespace

Command bench_command(CLI::App& root) {
  const auto texts = std::make_shared<ModelRunTexts>();
  texts->repeat = "30";
  CLI::App* app = root.add_subcommand(
      "bench", "Time every kernel of a model: time, GFLOP/s, share, percent of the peak");
  add_model(*app, *texts);
  add_model_run_options(*app, *texts, "Number of runs, of which the median time is printed");
  return {app,
          [texts] { return run_bench(*texts); },
          [texts](FileRoles& files) { add_model_run_files(*texts, files); },
          {texts, &texts->max_memory}};
}

}  // namespace hone::tool
