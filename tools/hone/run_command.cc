
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "hone/base/cancel.h"
#include "hone/base/clock.h"
#include "hone/tensor/npy.h"

#include "command.h"
#include "interrupt.h"
#include "json_text.h"
#include "model_file.h"
#include "option_texts.h"
#include "table.h"

namespace hone::tool {
namespace {

struct RunOptions {
  std::string model;
  std::vector<std::string> inputs;  // NAME=FILE.npy
  std::string output_dir;
  std::string repeat = "1";
  std::string threads = "0";
  std::string seed = "0";
  std::vector<std::string> shapes, bind;
  std::string db;
  bool json = false;
};

// The file that a tensor is kept in; a name may hold characters that a path must not.
std::string output_file(const std::string& folder, std::string name) {
  std::replace(name.begin(), name.end(), '/', '_');
  return fmt::format("{}/{}.npy", folder, name);
}

// The model's inputs in its order: those given, checked, and random ones for the others.
Result<std::vector<Tensor>> arrange(const std::vector<codegen::ModelTensor>& wanted,
                                    std::map<std::string, Tensor> given, uint64_t seed) {
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const codegen::ModelTensor& input = wanted[i];
    const auto it = given.find(input.name);
    if (it == given.end()) {
      tensors.push_back(random_input(input, seed + i));
      continue;
    }
    const Tensor& tensor = it->second;
    if (tensor.dtype() != input.dtype || tensor.shape() != input.shape) {
      return invalid("input '{}': found {} {}, expected {} {}", input.name,
                     dtype_name(tensor.dtype()), to_string(tensor.shape()), dtype_name(input.dtype),
                     to_string(input.shape));
    }
    tensors.push_back(tensor);
    given.erase(it);
  }
  if (given.empty()) return tensors;
  std::vector<std::string> names;
  for (const codegen::ModelTensor& input : wanted) names.push_back(input.name);
  return invalid("--input: the model has no input '{}', expected one of: {}", given.begin()->first,
                 join_names(names));
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

Status print(const std::vector<codegen::ModelTensor>& names, const std::vector<Tensor>& outputs,
             std::vector<double> times, bool as_json) {
  std::sort(times.begin(), times.end());
  const double median = times[times.size() / 2];
  Json json = {{"runs", times.size()}, {"median_seconds", median}, {"min_seconds", times.front()}};
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
  }
  if (as_json) {
    fmt::print("{}", json_text(json));
  } else {
    fmt::print("{}{} run{}: median {}, least {}\n", table.text(), times.size(),
               times.size() == 1 ? "" : "s", format_seconds(median), format_seconds(times.front()));
  }
  return ok_status();
}

Status run_model(const RunOptions& options) {
  ModelFileOptions file_options;
  file_options.db = options.db;
  HONE_ASSIGN_OR_RETURN(file_options.threads, parse_threads(options.threads));
  HONE_ASSIGN_OR_RETURN(const uint64_t seed, parse_seed(options.seed));
  HONE_ASSIGN_OR_RETURN(const int repeat, parse_count("--repeat", options.repeat, 1, 1000000));
  HONE_ASSIGN_OR_RETURN(file_options.shapes, parse_shapes(options.shapes));
  HONE_ASSIGN_OR_RETURN(auto given, parse_tensors("--input", options.inputs));
  HONE_ASSIGN_OR_RETURN(file_options.bind, parse_tensors("--bind", options.bind));
  // What is given also decides the shapes that an ONNX model leaves open, and may be bound.
  for (const auto& [name, tensor] : given) file_options.shapes.emplace(name, tensor.shape());
  file_options.available = given;
  HONE_ASSIGN_OR_RETURN(ModelFile file, open_model_file(options.model, file_options));
  for (const std::string& name : file.bound) {
    if (file_options.bind.count(name) == 0) given.erase(name);
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<Tensor> inputs,
                        arrange(file.model.inputs(), std::move(given), seed));

  std::vector<Tensor> outputs;
  std::vector<double> times;
  const std::atomic<bool>& interrupted = listen_for_interrupt();
  for (int i = 0; i < repeat; ++i) {
    HONE_RETURN_IF_ERROR(check_cancelled(&interrupted));
    const double start = real_clock().now_seconds();
    HONE_ASSIGN_OR_RETURN(outputs, file.model.run(inputs));
    times.push_back(real_clock().now_seconds() - start);
  }
  if (!options.output_dir.empty()) {
    std::error_code failure;
    std::filesystem::create_directories(options.output_dir, failure);
    if (failure)
      return error(Code::kIo, "cannot make the folder {}: {}", options.output_dir,
                   failure.message());
    for (size_t i = 0; i < outputs.size(); ++i) {
      HONE_RETURN_IF_ERROR(
          write_npy(output_file(options.output_dir, file.model.outputs()[i].name), outputs[i]));
    }
  }
  return print(file.model.outputs(), outputs, std::move(times), options.json);
}

}  // namespace

Command run_command(CLI::App& root) {
  const auto options = std::make_shared<RunOptions>();
  CLI::App* app = root.add_subcommand(
      "run", "Run a model: an artifact, or an ONNX file, which is compiled first");
  app->add_option("model", options->model, "The artifact (.so) or ONNX model (.onnx)")
      ->required()
      ->type_name("MODEL");
  app->add_option("--input", options->inputs,
                  "An input's values; inputs that are not given are random; repeat per input")
      ->type_name("NAME=FILE.npy")
      ->expected(1)
      ->take_all();
  app->add_option("--output-dir", options->output_dir, "Write each output to DIR/NAME.npy")
      ->type_name("DIR");
  app->add_option("--repeat", options->repeat, "Run so many times and print the median time")
      ->type_name("N")
      ->capture_default_str();
  add_threads(*app, options->threads);
  add_seed(*app, options->seed);
  add_shapes(*app, options->shapes);
  add_bind(*app, options->bind);
  add_db(*app, options->db);
  add_json(*app, options->json);
  return {app, [options] { return run_model(*options); }};
}

}  // namespace hone::tool
