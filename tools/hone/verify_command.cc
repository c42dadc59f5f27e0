#include <algorithm>
#include <cmath>

#include "hone/base/options.h"
#include "hone/verify.h"

#include "command.h"
#include "command_files.h"
#include "interrupt.h"
#include "json_text.h"
#include "model_file.h"
#include "option_texts.h"

namespace hone::tool {
namespace {

struct Options {
  std::string model, reference, tolerance, max_memory;
  std::vector<std::string> inputs;
  BuildOptionTexts build;
  bool json = false;
};

std::string place_of(const Divergence& divergence) {
  if (!divergence.problem.empty()) return divergence.problem;
  return fmt::format("found {:.9g} at {}, expected {:.9g}", divergence.found,
                     to_string(divergence.index), divergence.expected);
}

std::string describe(const Divergence& divergence) {
  std::string text =
      fmt::format("tensor '{}' of node '{}' ({}){}{}\n", divergence.value, divergence.node,
                  divergence.type, divergence.size.empty() ? "" : " at ", divergence.size);
  if (!divergence.kernel_class.empty()) {
    text += fmt::format("  task: {}\n  its nodes: {}\n", divergence.kernel_class,
                        join_names(divergence.fused));
  }
  text += fmt::format("  {}\n", place_of(divergence));
  if (divergence.problem.empty()) {
    text += fmt::format("  error {:.3g}, {} of {} elements are wrong\n", divergence.error,
                        divergence.wrong, divergence.elements);
  }
  return text;
}

void print_text(const VerifyReport& report) {
  if (!report.divergences.empty())
    fmt::print("the first that diverges:\n{}\n", describe(report.divergences.front()));
  const size_t most = 5;
  for (size_t i = 1; i < std::min(report.divergences.size(), most + 1); ++i) {
    const Divergence& other = report.divergences[i];
    fmt::print("then '{}' of node '{}' ({}): error {:.3g}\n", other.value, other.node, other.type,
               other.error);
  }
  if (report.divergences.size() > most + 1)
    fmt::print("and {} more\n", report.divergences.size() - most - 1);
  if (!report.missing.empty())
    fmt::print("not in the compiled model: {}\n", join_names(report.missing));
  for (const std::string& size : report.sizes) fmt::print("compared at {}\n", size);
  fmt::print("compared {} tensors of {} tasks: {} beyond the tolerance of {:g}", report.compared,
             report.tasks, report.divergences.size(), report.tolerance);
  if (report.worst_error > 0) {
    fmt::print("; the largest error within it is {:.3g}, in '{}'", report.worst_error,
               report.worst_value);
  }
  fmt::print("\n");
}

// Numbers that are not finite are text in JSON.
Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(fmt::format("{}", value));
}

void print_json(const VerifyReport& report) {
  Json json = {{"tolerance", report.tolerance},
               {"tasks", report.tasks},
               {"compared", report.compared},
               {"unknown", report.unknown},
               {"missing", report.missing},
               {"worst_error", report.worst_error},
               {"worst_value", report.worst_value},
               {"divergences", Json::array()},
               {"sizes", report.sizes}};
  for (const Divergence& divergence : report.divergences) {
    json["divergences"].push_back({{"value", divergence.value},
                                   {"node", divergence.node},
                                   {"type", divergence.type},
                                   {"kernel", divergence.kernel_class},
                                   {"fused", divergence.fused},
                                   {"problem", divergence.problem},
                                   {"index", divergence.index},
                                   {"found", number(divergence.found)},
                                   {"expected", number(divergence.expected)},
                                   {"error", number(divergence.error)},
                                   {"wrong", divergence.wrong},
                                   {"elements", divergence.elements},
                                   {"size", divergence.size}});
  }
  fmt::print("{}", json_text(json));
}

// A reference holds for certain inputs only: the file has them, unless they are given. What it has
// in place of a default is bound, unless options make that an input.
Status add_reference_inputs(const Options& options, const std::vector<NamedTensor>& reference,
                            std::map<std::string, Tensor>& given, ModelOptions& model) {
  const auto find = [&](const std::string& name) {
    return std::find_if(reference.begin(), reference.end(),
                        [&](const NamedTensor& tensor) { return tensor.name == name; });
  };
  HONE_ASSIGN_OR_RETURN(const InputNames names, input_names(options.model));
  for (const std::string& name : names.required) {
    const auto found = find(name);
    if (found != reference.end()) given.emplace(name, found->tensor);
    if (given.count(name) == 0 && model.bind.count(name) == 0) {
      return invalid("{} has no tensor '{}', which is an input: give --input {}=FILE.npy",
                     options.reference, name, name);
    }
  }
  for (const std::string& name : names.with_default) {
    const auto found = find(name);
    if (found == reference.end() || given.contains(name)) continue;
    const bool is_input = model.shapes.contains(name) || model.ranges.contains(name);
    (is_input ? given : model.bind).emplace(name, found->tensor);
  }
  return ok_status();
}

Status run(const Options& options) {
  VerifyOptions verify_options;
  HONE_ASSIGN_OR_RETURN(verify_options.compile, parse_build_options(options.build));
  CompileOptions& compile = verify_options.compile;
  note_new_database(compile);
  compile.interrupted = &listen_for_interrupt();
  if (!options.tolerance.empty()) {
    HONE_ASSIGN_OR_RETURN(verify_options.tolerance,
                          of_option("--tolerance", parse_real(options.tolerance, 0, 1e6)));
  }
  HONE_ASSIGN_OR_RETURN(auto given, parse_tensors("--input", options.inputs));
  std::vector<NamedTensor> reference;
  if (!options.reference.empty()) {
    HONE_ASSIGN_OR_RETURN(reference, read_npz(options.reference));
    HONE_RETURN_IF_ERROR(add_reference_inputs(options, reference, given, compile.model));
    verify_options.reference = &reference;
  }
  for (const auto& [name, tensor] : given) compile.model.shapes.emplace(name, tensor.shape());
  compile.model.available = given;
  verify_options.make_inputs = [&](const std::vector<ModelTensor>& wanted) {
    // All that is given names inputs, as their shapes are given; what was bound is none any more.
    std::map<std::string, Tensor> left;
    for (const ModelTensor& input : wanted) {
      const auto tensor = given.find(input.name);
      if (tensor != given.end()) left.insert(*tensor);
    }
    return inputs_of(options.model, wanted, std::move(left), compile.advanced.seed);
  };
  HONE_ASSIGN_OR_RETURN(const VerifyReport report, verify(options.model, verify_options));
  if (options.json) {
    print_json(report);
  } else {
    print_text(report);
  }
  if (report.divergences.empty()) return ok_status();
  const Divergence& first = report.divergences.front();
  return error(Code::kInternal, "node '{}' ({}) diverges: tensor '{}': {}", first.node, first.type,
               first.value, place_of(first));
}

}  // namespace

Command verify_command(CLI::App& root) {
  const auto options = std::make_shared<Options>();
  CLI::App* app = root.add_subcommand(
      "verify",
      "Compare every tensor of the compiled model with a naive run and name the first wrong one");
  app->add_option("model", options->model, "The ONNX model")->required()->type_name("MODEL");
  app->add_option(
         "--reference", options->reference,
         "Compare with these tensors, by name, instead of a naive run's; inputs, also those "
         "with a default, may be among them")
      ->type_name("FILE.npz");
  add_inputs(*app, options->inputs);
  app->add_option(
         "--tolerance", options->tolerance,
         "Largest error, relative to a tensor's largest magnitude; default: 1e-3, more if the "
         "model computes in narrower types")
      ->type_name("X");
  add_task_options(*app, options->build);
  add_own_memory(*app, options->max_memory);
  add_json(*app, options->json);
  app->footer("Exit code 1 if a tensor diverges; 2 bad input.");
  return {app,
          [options] { return run(*options); },
          [options](FileRoles& files) {
            files.read("MODEL", options->model);
            files.read("--reference", options->reference);
            add_tensor_files("--input", options->inputs, files);
            add_build_files(options->build, DatabaseUse::kRead, files);
          },
          {options, &options->max_memory}};
}

}  // namespace hone::tool
