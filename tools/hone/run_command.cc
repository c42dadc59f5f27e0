
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "hone/base/cancel.h"
#include "hone/base/clock.h"
#include "hone/base/file.h"
#include "hone/npy.h"
#include "hone/open_model.h"

#include "command.h"
#include "command_files.h"
#include "interrupt.h"
#include "json_text.h"
#include "median.h"
#include "model_file.h"
#include "option_texts.h"
#include "output_files.h"
#include "profile.h"
#include "table.h"
#include "trace.h"

namespace hone::tool {
namespace {

constexpr size_t kMostTraced = 100;  // runs; more are hard to look at

struct RunTexts {
  ModelRunTexts model;
  std::vector<std::string> inputs;  // NAME=FILE.npy
  std::string output_dir;
  bool profile = false;
  std::string trace;  // the file to write; empty: none
};

std::vector<std::string> files_of(const std::vector<ModelTensor>& outputs) {
  std::vector<std::string> all;
  for (const ModelTensor& output : outputs) all.push_back(output.name);
  return output_files(all);
}

Status write_outputs(const std::string& folder, const std::vector<std::string>& files,
                     const std::vector<Tensor>& outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::filesystem::path path = std::filesystem::path(folder) / files[i];
    std::error_code failure;
    std::filesystem::create_directories(path.parent_path(), failure);
    if (failure)
      return error(Code::kIo, "cannot make the folder {}: {}", path.parent_path().string(),
                   failure.message());
    HONE_RETURN_IF_ERROR(write_npy(path.string(), outputs[i]));
  }
  return ok_status();
}

void add_files(const RunTexts& texts, FileRoles& files) {
  add_model_run_files(texts.model, files);
  add_tensor_files("--input", texts.inputs, files);
}

// That no output overwrites what was read.
Status check_files(const RunTexts& texts, const OpenedModel& file,
                   const std::vector<std::string>& outputs) {
  FileRoles files;
  add_files(texts, files);
  for (const std::string& name : file.files) files.read("the model", name);
  for (const std::string& name : outputs)
    files.written("--output-dir", (std::filesystem::path(texts.output_dir) / name).string());
  if (!texts.trace.empty()) files.written("--trace", texts.trace);
  return files.check();
}

struct Moments {
  double mean = 0, deviation = 0, least = 0, greatest = 0;
};
Moments moments(const Tensor& tensor) {
  Moments m;
  const int64_t n = tensor.size();
  for (int64_t i = 0; i < n; ++i) {
    const double x = tensor.at(i);
    m.least = i == 0 ? x : std::min(m.least, x);
    m.greatest = i == 0 ? x : std::max(m.greatest, x);
    m.mean += x / static_cast<double>(n);
  }
  for (int64_t i = 0; i < n; ++i)
    m.deviation += std::pow(tensor.at(i) - m.mean, 2) / static_cast<double>(n);
  m.deviation = std::sqrt(m.deviation);
  return m;
}

// `files`: of the outputs; none if none was written.
Status print(const Model& model, const std::vector<Tensor>& outputs,
             const std::vector<std::string>& files, std::vector<double> times,
             const Profile& profile, bool as_json) {
  const std::vector<ModelTensor>& names = model.outputs();
  std::sort(times.begin(), times.end());
  const double typical = median(times);
  Json json = {{"runs", times.size()}, {"median_seconds", typical}, {"min_seconds", times.front()}};
  if (!model.device().empty()) {
    json["device"] = model.device();
    json["device_bytes"] = model.device_bytes();
  }
  json["outputs"] = Json::array();
  Table table({"output", "type", "shape", "mean", "std", "min", "max"}, 2);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Moments m = moments(outputs[i]);
    table.add({names[i].name, std::string(dtype_name(outputs[i].dtype())),
               to_string(outputs[i].shape()), fmt::format("{:.5g}", m.mean),
               fmt::format("{:.5g}", m.deviation), fmt::format("{:.5g}", m.least),
               fmt::format("{:.5g}", m.greatest)});
    json["outputs"].push_back({{"name", names[i].name},
                               {"dtype", dtype_name(outputs[i].dtype())},
                               {"shape", outputs[i].shape()},
                               {"mean", m.mean},
                               {"std", m.deviation},
                               {"min", m.least},
                               {"max", m.greatest}});
    if (!files.empty()) json["outputs"].back()["file"] = files[i];
  }
  if (as_json) {
    if (profile.runs() > 0) json["profile"] = profile.json();
    fmt::print("{}", json_text(json));
  } else {
    if (profile.runs() > 0) fmt::print("{}\n", profile.text());
    fmt::print("{}{} run{}: median {}, least {}\n", table.text(), times.size(),
               times.size() == 1 ? "" : "s", format_seconds(typical),
               format_seconds(times.front()));
    if (!model.device().empty())
      fmt::print("on {}, with {:.1f} MiB of its memory\n", model.device(),
                 static_cast<double>(model.device_bytes()) / (1 << 20));
    for (size_t i = 0; i < files.size(); ++i) {
      if (files[i] != output_files({names[i].name})[0])
        fmt::print("output {} is in {}\n", names[i].name, files[i]);
    }
  }
  return ok_status();
}

// The runs of a model, as --profile and --trace tell of them, and the outputs of the last one.
struct Runs {
  std::vector<Tensor> outputs;
  std::vector<double> times;
  Profile profile;
  Trace trace;
};

Status run_repeatedly(Model& model, const std::vector<Tensor>& inputs, int repeat,
                      const RunTexts& texts, Runs& done) {
  const std::atomic<bool>& interrupted = listen_for_interrupt();
  const double first = real_clock().now_seconds();
  while (std::ssize(done.times) < repeat) {
    HONE_RETURN_IF_ERROR(check_cancelled(&interrupted));
    const double start = real_clock().now_seconds();
    const int rest = repeat - static_cast<int>(done.times.size());
    std::vector<RunTime> runs;
    Result<std::vector<Tensor>> outputs = model.run(inputs, rest, runs);
    if (!outputs.ok()) return in_file(texts.model.model, outputs.status());
    done.outputs = std::move(outputs).value();
    for (const RunTime& run : runs) {
      done.times.push_back(run.seconds);
      if (texts.profile) done.profile.add_run(run.steps);
    }
    if (!texts.trace.empty() && done.times.size() <= kMostTraced)
      done.trace.add_run(start - first, model.step_times(), model.thread_work());
  }
  return ok_status();
}

Status run_model(const RunTexts& texts) {
  HONE_ASSIGN_OR_RETURN(ModelRun options, parse_model_run(texts.model));
  HONE_ASSIGN_OR_RETURN(auto given, parse_tensors("--input", texts.inputs));
  // What is given also decides the shapes that an ONNX model leaves open, and may be bound.
  ModelOptions& model = options.compile.model;
  HONE_ASSIGN_OR_RETURN(const bool is_compiled, is_library(texts.model.model));
  if (!is_compiled) note_new_database(options.compile);
  for (const auto& [name, tensor] : given) {
    if (!is_compiled && model.ranges.empty()) model.shapes.emplace(name, tensor.shape());
  }
  model.available = given;
  HONE_ASSIGN_OR_RETURN(OpenedModel file, open_file(texts.model.model, options.compile));
  for (const std::string& name : file.bound) {
    if (model.bind.count(name) == 0) given.erase(name);
  }
  for (size_t i = 0; i < file.model.inputs().size(); ++i) {
    const ModelTensor& input = file.model.inputs()[i];
    const auto tensor = given.find(input.name);
    if (tensor == given.end() || input.dims.empty()) continue;
    HONE_RETURN_IF_ERROR(
        by_option("--input: " + texts.model.model,
                  file.model.set_input_shape(static_cast<int>(i), tensor->second.shape())));
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<ModelTensor> wanted,
                        tensors_of_run(texts.model.model, file.model));
  HONE_ASSIGN_OR_RETURN(const std::vector<Tensor> inputs,
                        inputs_of(texts.model.model, wanted, std::move(given), options.seed));

  std::vector<std::string> files;  // below the folder, one for each output
  if (!texts.output_dir.empty()) files = files_of(file.model.outputs());
  HONE_RETURN_IF_ERROR(check_files(texts, file, files));

  Limits limits;  // those of other machines are not measured
  if (texts.profile && texts.model.machine.empty() && options.compile.records.use_db) {
    HONE_ASSIGN_OR_RETURN(limits,
                          Limits::load(texts.model.db, "host", options.compile.target.threads));
  }
  bool is_whole = true;
  for (size_t i = 0; i < wanted.size(); ++i)
    is_whole = is_whole && wanted[i].shape == file.model.inputs()[i].shape;
  Runs runs{{},
            {},
            Profile(std::move(limits), is_whole),
            Trace(std::filesystem::path(texts.model.model).filename().string())};
  file.model.profile(texts.profile);
  if (!texts.trace.empty()) HONE_RETURN_IF_ERROR(by_option("--trace", file.model.trace(true)));
  HONE_RETURN_IF_ERROR(run_repeatedly(file.model, inputs, options.repeat, texts, runs));
  if (!texts.trace.empty())
    HONE_RETURN_IF_ERROR(write_file_atomic(texts.trace, json_text(runs.trace.json())));
  if (!texts.output_dir.empty())
    HONE_RETURN_IF_ERROR(write_outputs(texts.output_dir, files, runs.outputs));
  return print(file.model, runs.outputs, files, std::move(runs.times), runs.profile,
               texts.model.json);
}

}  // namespace

Command run_command(CLI::App& root) {
  const auto texts = std::make_shared<RunTexts>();
  CLI::App* app = root.add_subcommand(
      "run", "Run a model: an artifact, or an ONNX file, which is compiled first");
  add_model(*app, texts->model);
  add_inputs(*app, texts->inputs);
  app->add_option("--output-dir", texts->output_dir, "Write each output to DIR/NAME.npy")
      ->type_name("DIR");
  app->add_flag("--profile", texts->profile,
                "Print the time of each kernel: its calls in a run, mean time, share, GFLOP/s");
  app->add_option(
         "--trace", texts->trace,
         "Write when each thread worked on each kernel, in the first 100 runs, as JSON for "
         "ui.perfetto.dev or\nchrome://tracing. Kernels that could run together run one by "
         "one")
      ->type_name("FILE");
  add_model_run_options(*app, texts->model, "Number of runs, of which the median time is printed");
  return {app,
          [texts] { return run_model(*texts); },
          [texts](FileRoles& files) {
            add_files(*texts, files);
            if (!texts->trace.empty()) files.written("--trace", texts->trace);
          },
          {texts, &texts->model.max_memory}};
}

}  // namespace hone::tool
