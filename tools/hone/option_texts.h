// tools/hone/option_texts.h - options that several commands share: one text in --help, one parser.
// A parser's error begins with the option's name.
#pragma once

#include <CLI/CLI.hpp>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hone/base/status.h"
#include "hone/open_model.h"
#include "hone/options.h"

namespace hone::tool {

void add_threads(CLI::App& app, std::string& text);
void add_seed(CLI::App& app, std::string& text);
// --shape of what compiles a model, with ranges, and of what runs one. `more` is put after the
// numbers that may be given.
void add_shapes(CLI::App& app, std::vector<std::string>& texts);
void add_run_shapes(CLI::App& app, std::vector<std::string>& texts, const std::string& more);
void add_bind(CLI::App& app, std::vector<std::string>& texts);
void add_linked_data(CLI::App& app, bool& linked_data);
void add_max_turns(CLI::App& app, std::string& text);
void add_inputs(CLI::App& app, std::vector<std::string>& texts);
void add_db(CLI::App& app, std::string& path);
void add_device(CLI::App& app, std::string& name);
void add_machine(CLI::App& app, std::string& name);
// Whose measurements a command works on: NAME, or NAME/THREADS.
void add_measured_device(CLI::App& app, std::string& name);
[[nodiscard]] std::string measured_device_help();
void add_excluded_networks(CLI::App& app, std::vector<std::string>& names);
void add_cost(CLI::App& app, std::string& name);
void add_booster(CLI::App& app, std::string& name);
void add_json(CLI::App& app, bool& json);
void add_accuracy(CLI::App& app, std::string& level);
// Adds the --max-memory that bounds the command's own memory (Command::max_memory). `more` is put
// at the end of the help text.
void add_own_memory(CLI::App& app, std::string& text, const std::string& more = "");

// The options of everything that compiles a model or looks at how it would be.
struct BuildOptionTexts {
  std::string threads = "0";
  std::string seed = std::to_string(AdvancedOptions().seed);
  std::vector<std::string> shapes, bind, skip_passes, also_passes;
  std::string db;
  bool no_db = false;
  std::string device = TargetOptions().device;
  std::string machine;
  std::string transfer = RecordOptions().transfer;
  std::string nearest = RecordOptions().nearest;
  std::vector<std::string> exclude_models;
  bool no_shipped = false;
  bool linked_data = false;
  std::string max_turns = std::to_string(ModelOptions().max_turns);
  std::string cost = AdvancedOptions().cost;
  std::string refine = AdvancedOptions().refine;
  std::string accuracy = TargetOptions().accuracy;
  std::string prefix = LibraryOptions().prefix;
  std::string max_memory;
  bool header = false;
  bool static_library = false;
  bool check = false, no_check = false;
};
void add_task_options(CLI::App& app, BuildOptionTexts& texts);   // all but the library's
void add_build_options(CLI::App& app, BuildOptionTexts& texts);  // all
[[nodiscard]] Result<CompileOptions> parse_build_options(const BuildOptionTexts& texts);
// Reads no records from a database that is a file in which nothing was stored yet: `hone tune`
// makes it. If its folder does not exist either, the name is a mistake, which opening it finds.
// Returns whether that is so.
[[nodiscard]] bool leave_out_new_database(CompileOptions& options);
// Likewise; a line on stderr says so.
void note_new_database(CompileOptions& options);

// MODEL and the options of what runs it: `run` and `bench`.
struct ModelRunTexts {
  std::string model;
  std::string repeat = "1";
  std::string threads = "0";
  std::string time_limit = "300";
  std::string seed = "0";
  std::vector<std::string> shapes, bind;
  std::string db;
  std::string machine;
  bool linked_data = false;
  std::string max_turns = std::to_string(ModelOptions().max_turns);
  std::string accuracy = TargetOptions().accuracy;
  std::string max_memory;
  bool json = false;
};
struct ModelRun {
  CompileOptions compile;  // of an ONNX model
  int repeat = 1;
  uint64_t seed = 0;  // of random inputs
};
void add_model(CLI::App& app, ModelRunTexts& texts);
// `shape_text` says what else --shape takes, as ", or ..."; it may be empty.
void add_model_run_options(CLI::App& app, ModelRunTexts& texts, const std::string& repeat_text,
                           const std::string& shape_text = "");
[[nodiscard]] Result<ModelRun> parse_model_run(const ModelRunTexts& texts);

[[nodiscard]] Result<int> parse_count(std::string_view option, std::string_view text, int low,
                                      int high);
[[nodiscard]] Result<int64_t> parse_max_memory(std::string_view text);  // bytes; 0 for no text
[[nodiscard]] Result<int> parse_threads(std::string_view text);         // 0 = all cores
[[nodiscard]] Result<uint64_t> parse_seed(std::string_view text);
[[nodiscard]] Result<std::map<std::string, Shape>> parse_shapes(
    const std::vector<std::string>& texts);
// NAME=FILE, where a name may hold '=': behind the one that counts stands a file.
[[nodiscard]] Result<std::pair<std::string, std::string>> parse_file_of_name(
    const std::string& text);
// NAME=NUMBER, where no file has the number's name: a tensor of rank 0, of f64, or of i64 for an
// integer from 2^53 on, which f64 may not have.
[[nodiscard]] std::optional<Tensor> parse_number_of_name(const std::string& text);
// --bind: NAME=FILE.npy or NAME=NUMBER, each name once; the files are read.
[[nodiscard]] Result<std::map<std::string, Tensor>> parse_bound(
    const std::vector<std::string>& texts);
// NAME=FILE.npy, each name once; the files are read.
[[nodiscard]] Result<std::map<std::string, Tensor>> parse_tensors(
    std::string_view option, const std::vector<std::string>& texts);
// "a, b, c"
[[nodiscard]] std::string join_names(const std::vector<std::string>& names);

}  // namespace hone::tool
