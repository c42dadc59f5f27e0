// Runs ONNX conformance cases through the real path: import, compile to machine code, link, load,
// run, compare. A case is a folder with model.onnx and test_data_set_*/{input,output}_*.pb.
//
//   hone_conformance [--filter TEXT] [--jobs N] [--shard I --shards N] [--list FILE] [--check]
//   [--beside FOLDER] FOLDER...
//
// Each case runs in a process of its own, with a time limit and a memory limit, so that a crash is
// one failed case; what all of them read, as the trees that predict times, is read before. Inputs
// whose values decide shapes are constants, the others are given when it runs. Prints one line per
// failed case and the totals. With --list, a table of the cases that are not expected to pass
// ("name: reason" per line), it fails if the table is wrong in either direction; without, it fails
// if any case fails. --check: a case also fails if the check of the finished library
// (src/hone/commands/check/checked_writer.h) finds a fault, or cannot check it.
// With several folders, a case is named "folder/case". --beside: a case runs elsewhere, and is left
// out, if that folder has it in the same words: the same files, and no other tolerance.
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>

#include "hone/base/clock.h"
#include "hone/base/file.h"
#include "hone/base/sanitizers.h"
#include "hone/commands/tune.h"
#include "hone/graph/import_onnx.h"
#include "hone/graph/onnx_tensor.h"
#include "hone/open_model.h"
#include "hone/session/session.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

constexpr double kTimeLimit = kSanitized ? 300 : 60;  // seconds per case
constexpr rlim_t kMemoryLimit = 8ULL << 30;           // bytes of address space

struct Tolerance {
  double relative = 1e-3, absolute = 1e-7;  // of ONNX's own runner
};

std::vector<std::string> files_named(const fs::path& folder, const std::string& kind) {
  std::vector<std::string> files;
  for (int i = 0;; ++i) {
    const fs::path file = folder / fmt::format("{}_{}.pb", kind, i);
    if (!fs::exists(file)) return files;
    files.push_back(file.string());
  }
}

Status compare(const Tensor& found, const Tensor& expected, const std::string& name,
               const Tolerance& tolerance) {
  if (found.dtype() != expected.dtype() || found.shape() != expected.shape()) {
    return invalid("output '{}' is {} {}, expected {} {}", name, dtype_name(found.dtype()),
                   to_string(found.shape()), dtype_name(expected.dtype()),
                   to_string(expected.shape()));
  }
  for (int64_t i = 0; i < found.size(); ++i) {
    const double x = found.at(i), y = expected.at(i);
    const bool same = x == y || (std::isnan(x) && std::isnan(y)) ||
                      (is_float(found.dtype()) &&
                       std::abs(x - y) <= tolerance.absolute + tolerance.relative * std::abs(y));
    if (!same) {
      return invalid("output '{}' element {} of {} is {}, expected {}", name, i,
                     to_string(found.shape()), x, y);
    }
  }
  return ok_status();
}

struct DataSet {
  std::map<std::string, Tensor> inputs;
  std::vector<Tensor> outputs;
};

Result<DataSet> read_data_set(const fs::path& model, const fs::path& folder) {
  HONE_ASSIGN_OR_RETURN(const InputNames inputs, graph::input_names(model.string()));
  const std::vector<std::string>& names = inputs.required;
  DataSet data;
  const std::vector<std::string> files = files_named(folder, "input");
  for (size_t i = 0; i < files.size(); ++i) {
    HONE_ASSIGN_OR_RETURN(graph::NamedTensor input, graph::read_tensor_file(files[i]));
    if (i < names.size()) data.inputs[names[i]] = std::move(input.tensor);
  }
  for (const std::string& file : files_named(folder, "output")) {
    HONE_ASSIGN_OR_RETURN(graph::NamedTensor output, graph::read_tensor_file(file));
    data.outputs.push_back(std::move(output.tensor));
  }
  return data;
}

// How many of the inputs had to be constants.
struct Binding {
  size_t bound = 0, inputs = 0;
};

bool checks_libraries = false;  // --check

CompileOptions compile_options() {
  CompileOptions options;
  options.records.use_db = false;
  options.target.threads = 2;
  options.library.check = checks_libraries;  // else what is wrong is to show, not to be left out
  return options;
}

Status expect_right(const CheckSummary& check) {
  if (!check.checked) return error(Code::kInternal, "not checked: {}", check.skipped);
  if (check.healed.empty()) return ok_status();
  const HealedFault& fault = check.healed.front();
  return error(Code::kInternal, "the check blames {} at node '{}': output '{}' is off by {:.3g}",
               fault.what, fault.node, fault.output, fault.error);
}

Status run_data_set(const fs::path& model_file, const fs::path& folder, const Tolerance& tolerance,
                    const fs::path& library, Binding& binding) {
  const Result<DataSet> data = read_data_set(model_file, folder);
  if (!data.ok()) {  // a sequence, which the model itself says more clearly
    const Status status = graph::import_onnx(model_file.string()).status();
    return status.ok() ? data.status() : status;
  }
  graph::ImportOptions import;
  for (const auto& [name, tensor] : data->inputs) import.shapes[name] = tensor.shape();
  HONE_ASSIGN_OR_RETURN(graph::Graph graph,
                        import_onnx_binding(model_file.string(), std::move(import), data->inputs));
  binding = {data->inputs.size() - graph.inputs.size(), data->inputs.size()};
  HONE_ASSIGN_OR_RETURN(const CompileSummary summary,
                        compile(std::move(graph), library.string(), compile_options()));
  if (checks_libraries) HONE_RETURN_IF_ERROR(expect_right(summary.check));
  HONE_ASSIGN_OR_RETURN(Model model, load(library.string(), 2));
  std::vector<Tensor> inputs;
  for (const ModelTensor& input : model.inputs()) {
    const auto it = data->inputs.find(input.name);
    if (it == data->inputs.end()) return invalid("no value is given for input '{}'", input.name);
    inputs.push_back(it->second);
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, model.run(inputs));
  if (outputs.size() != data->outputs.size())
    return invalid("{} outputs, expected {}", outputs.size(), data->outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i)
    HONE_RETURN_IF_ERROR(compare(outputs[i], data->outputs[i], model.outputs()[i].name, tolerance));
  return ok_status();
}

Tolerance tolerance_of(const fs::path& folder) {
  Tolerance tolerance;
  if (std::ifstream file(folder / "tolerance"); file)
    file >> tolerance.relative >> tolerance.absolute;
  return tolerance;
}

Status run_case(const fs::path& folder, Binding& binding) {
  if (std::ifstream skip(folder / "skip"); skip) {
    std::string why;
    std::getline(skip, why);
    return {Code::kUnsupported, why};
  }
  const Tolerance tolerance = tolerance_of(folder);
  HONE_ASSIGN_OR_RETURN(TempDir work, TempDir::create("hone-conformance"));
  int sets = 0;
  for (;; ++sets) {
    const fs::path data = folder / fmt::format("test_data_set_{}", sets);
    if (!fs::exists(data)) break;
    HONE_RETURN_IF_ERROR(run_data_set(folder / "model.onnx", data, tolerance,
                                      work.file(fmt::format("model{}.so", sets)), binding));
  }
  return sets > 0 ? ok_status() : invalid("no data");
}

// Returns whether a case of this name there has the same files, and none that changes how it runs.
bool has_same(const fs::path& beside, const fs::path& folder) {
  const fs::path other = beside / folder.filename();
  if (!fs::exists(other) || fs::exists(other / "skip")) return false;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const Result<std::string> ours = read_file(entry.path().string());
    const Result<std::string> theirs =
        read_file((other / fs::relative(entry.path(), folder)).string());
    if (!ours.ok() || !theirs.ok() || *ours != *theirs) return false;
  }
  const Tolerance ours = tolerance_of(folder), theirs = tolerance_of(other);
  return theirs.relative <= ours.relative && theirs.absolute <= ours.absolute;
}

struct Running {
  std::string name;
  int pipe;
  double start;
};

struct Outcome {
  bool passed = false;
  std::string why;        // it failed
  bool constant = false;  // nothing was left to give when it ran
};

class Runner {
 public:
  explicit Runner(int jobs) : jobs_(jobs) {}

  void add(const std::string& name, const fs::path& folder) {
    while (static_cast<int>(running_.size()) >= jobs_) reap();
    int ends[2];
    if (pipe(ends) != 0) return;
    const pid_t child = fork();
    if (child == 0) {
      close(ends[0]);
      const rlimit memory{kMemoryLimit, kMemoryLimit};
      if (!kSanitized) setrlimit(RLIMIT_AS, &memory);
      const rlimit no_core{0, 0};
      setrlimit(RLIMIT_CORE, &no_core);
      alarm(static_cast<unsigned>(kTimeLimit));
      Binding binding;
      const Status status = run_case(folder, binding);
      const bool constant = binding.inputs > 0 && binding.bound == binding.inputs;
      std::string text = status.ok() ? (constant ? "constant" : "ok") : status.message();
      text.resize(std::min<size_t>(text.size(), 4000));  // fits a pipe: the reader need not hurry
      const ssize_t written = write(ends[1], text.data(), text.size());
      _exit(status.ok() && written > 0 ? 0 : 1);
    }
    close(ends[1]);
    running_[child] = {name, ends[0], real_clock().now_seconds()};
  }

  std::map<std::string, Outcome> finish() {
    while (!running_.empty()) reap();
    return std::move(outcomes_);
  }

 private:
  void reap() {
    int status = 0;
    const pid_t child = wait(&status);
    const auto it = running_.find(child);
    if (it == running_.end()) return;
    std::string text(5000, '\0');
    const ssize_t length = read(it->second.pipe, text.data(), text.size());
    text.resize(static_cast<size_t>(std::max<ssize_t>(0, length)));
    close(it->second.pipe);
    Outcome& outcome = outcomes_[it->second.name];
    outcome.passed = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    outcome.why = text;
    outcome.constant = outcome.passed && text == "constant";
    if (WIFSIGNALED(status)) {
      outcome.why = WTERMSIG(status) == SIGALRM ? fmt::format("ran for more than {} s", kTimeLimit)
                                                : fmt::format("signal {}", WTERMSIG(status));
    }
    running_.erase(it);
  }

  int jobs_;
  std::map<pid_t, Running> running_;
  std::map<std::string, Outcome> outcomes_;
};

// "name: reason" per line; # starts a comment.
std::map<std::string, std::string> read_table(const std::string& path) {
  std::map<std::string, std::string> table;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (!line.empty() && line[0] != '#' && colon != std::string::npos)
      table[line.substr(0, colon)] = line.substr(colon + 2);
  }
  return table;
}

struct Options {
  std::string filter, list, beside;
  int jobs = 2;
  int shard = 0, shards = 1;
  bool quiet = false;
  std::vector<std::string> folders;
};

int run_cases(const Options& options) {
  if (const auto read = Session::open(compile_options()); !read.ok()) {
    fmt::print("{}\n", read.status().message());
    return 1;
  }
  std::map<std::string, fs::path> cases;
  for (const std::string& folder : options.folders) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      std::string name = entry.path().filename().string();
      if (options.folders.size() > 1) name = fs::path(folder).filename().string() + "/" + name;
      if (fs::exists(entry.path() / "model.onnx")) cases[name] = entry.path();
    }
  }
  Runner runner(options.jobs);
  int number = 0;
  for (const auto& [name, folder] : cases) {
    if (name.find(options.filter) == std::string::npos) continue;
    if (!options.beside.empty() && has_same(options.beside, folder)) continue;
    if (number++ % options.shards == options.shard) runner.add(name, folder);
  }
  const std::map<std::string, Outcome> outcomes = runner.finish();
  const auto table =
      options.list.empty() ? std::map<std::string, std::string>() : read_table(options.list);
  int passed = 0, constant = 0, wrong = 0;
  for (const auto& [name, why] : table) {
    if (cases.count(name) != 0) continue;
    ++wrong;
    fmt::print("no case has this name, though the table has it: {}\n", name);
  }
  for (const auto& [name, outcome] : outcomes) {
    passed += static_cast<int>(outcome.passed);
    constant += static_cast<int>(outcome.constant);
    const bool listed = table.count(name) != 0;
    if (outcome.passed && listed) {
      ++wrong;
      fmt::print("PASS {}, though the table has it: {}\n", name, table.at(name));
    }
    if (outcome.passed || (listed && options.quiet)) continue;
    wrong += static_cast<int>(!listed);
    fmt::print("FAIL {}: {}\n", name, outcome.why);
  }
  fmt::print("{} of {} cases passed, {} of them with all inputs constant\n", passed,
             outcomes.size(), constant);
  if (outcomes.empty()) {
    fmt::print("no cases in {}\n", fmt::join(options.folders, ", "));
    return 1;
  }
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace hone

int main(int argc, char** argv) {
  hone::Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const auto next = [&] { return i + 1 < argc ? std::string(argv[++i]) : std::string(); };
    if (argument == "--filter")
      options.filter = next();
    else if (argument == "--list")
      options.list = next(), options.quiet = true;
    else if (argument == "--beside")
      options.beside = next();
    else if (argument == "--check")
      hone::checks_libraries = true;
    else if (argument == "--jobs")
      options.jobs = std::max(1, std::atoi(next().c_str()));
    else if (argument == "--shard")
      options.shard = std::atoi(next().c_str());
    else if (argument == "--shards")
      options.shards = std::max(1, std::atoi(next().c_str()));
    else
      options.folders.push_back(argument);
  }
  if (options.folders.empty()) {
    fmt::print(stderr,
               "usage: hone_conformance [--filter TEXT] [--jobs N] [--shard I --shards N] "
               "[--list TABLE] [--check] [--beside FOLDER] FOLDER...\n");
    return 2;
  }
  return hone::run_cases(options);
}
