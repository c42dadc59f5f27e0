#include "option_texts.h"

#include <fmt/ranges.h>

#include <cstdint>
#include <filesystem>
#include <limits>

#include "hone/base/file.h"
#include "hone/base/options.h"
#include "hone/base/shape_texts.h"
#include "hone/cost_models.h"
#include "hone/database.h"
#include "hone/device.h"
#include "hone/npy.h"
#include "hone/open_model.h"
#include "hone/train.h"

#include "interrupt.h"

namespace hone::tool {

void add_threads(CLI::App& app, std::string& text) {
  app.add_option("--threads", text,
                 "Number of threads that the model runs on; 0: all cores of a CPU, 1 for a GPU")
      ->type_name("N")
      ->capture_default_str();
}
void add_seed(CLI::App& app, std::string& text) {
  app.add_option("--seed", text, "Seed of all random choices; the same seed repeats them")
      ->type_name("N")
      ->capture_default_str();
}
void add_shapes(CLI::App& app, std::vector<std::string>& texts) {
  app.add_option("--shape", texts,
                 "Shape of an input whose extents are open in the model, or another batch size: "
                 "NAME=4x3x224x224; repeat per input. An extent may be a range, 1..8x3x224x224, or "
                 "a symbol, batchxseq, whose range is given as batch=1..8")
      ->type_name("NAME=DIMS")
      ->expected(1)
      ->take_all();
}
void add_run_shapes(CLI::App& app, std::vector<std::string>& texts, const std::string& more) {
  app.add_option("--shape", texts,
                 "Shape of an input whose extents are open in the model or a range in the library: "
                 "NAME=4x3x224x224; or a size of the library by its name: batch=2" +
                     more +
                     "; of a model that is compiled first, also a range, as for compile: batch=1..8"
                     "; repeat per input or size. Default: the largest")
      ->type_name("NAME=DIMS")
      ->expected(1)
      ->take_all();
}
void add_bind(CLI::App& app, std::vector<std::string>& texts) {
  app.add_option(
         "--bind", texts,
         "Make an input a constant of the library, for example if its value decides a shape; "
         "repeat per input")
      ->type_name("NAME=FILE.npy|NUMBER")
      ->expected(1)
      ->take_all();
}
void add_linked_data(CLI::App& app, bool& linked_data) {
  app.add_flag(
      "--allow-linked-data", linked_data,
      "Follow symbolic links from the model's external data to files outside its folder, as in a "
      "cache of Hugging Face");
}
void add_max_turns(CLI::App& app, std::string& text) {
  app.add_option("--max-turns", text,
                 "The most turns of a loop of which only the run knows the number; what it stacks "
                 "takes memory for so many")
      ->type_name("N")
      ->capture_default_str();
}
void add_inputs(CLI::App& app, std::vector<std::string>& texts) {
  app.add_option("--input", texts,
                 "Values of an input; inputs without values are random; repeat per input")
      ->type_name("NAME=FILE.npy")
      ->expected(1)
      ->take_all();
}
void add_db(CLI::App& app, std::string& path) {
  app.add_option("--db", path,
                 "The database of measurements, a file or postgres://user@host/name; default: "
                 "~/.local/share/hone/hone.db")
      ->type_name("DB")
      ->check([](const std::string& db) { return check_database(db).message(); });
}
void add_device(CLI::App& app, std::string& name) {
  app.add_option("--device", name,
                 fmt::format("The machine to compile for: {}", join_names(device_names())))
      ->type_name("NAME")
      ->capture_default_str();
}
void add_machine(CLI::App& app, std::string& name) {
  app.add_option("--machine", name,
                 "The machine that \"host\" is and that measures, if it is not this one: "
                 "grpc://HOST:PORT, where hone serve runs, or a file about it")
      ->type_name("MACHINE");
}
void add_measured_device(CLI::App& app, std::string& name) {
  app.add_option("--device", name, measured_device_help())
      ->type_name("NAME")
      ->capture_default_str();
}
std::string measured_device_help() {
  return fmt::format(
      "The machine that records are from: {}, or a key that hone dataset stat prints; "
      "NAME/THREADS: only records with that number of threads",
      join_names(device_names()));
}
void add_excluded_networks(CLI::App& app, std::vector<std::string>& names) {
  app.add_option("--exclude-model", names,
                 "Leave out every task of this network; repeat per network")
      ->type_name("NAME")
      ->expected(1)
      ->take_all();
}

void add_cost(CLI::App& app, std::string& name) {
  app.add_option(
         "--cost", name,
         fmt::format("The cost model: {}, or a file that hone train wrote; {}: combined-CPU "
                     "if trees for this processor ship, combined if its trees were trained on the "
                     "instruction set (AVX2, AVX-512), gpu for a GPU, else analytic",
                     join_names(cost_model_names()), AdvancedOptions().cost))
      ->type_name("NAME")
      ->capture_default_str();
}

void add_booster(CLI::App& app, std::string& name) {
  const std::vector<std::string> names = train_choices().boosters;
  app.add_option("--booster", name,
                 fmt::format("The library that fits trees: {} (of the Python package lightgbm; "
                             "HONE_LIGHTGBM may name its file)",
                             join_names(names)))
      ->type_name("NAME")
      ->default_str(names.front());
}

void add_json(CLI::App& app, bool& json) {
  app.add_flag("--json", json, "Print JSON to standard output instead of text");
}

void add_accuracy(CLI::App& app, std::string& level) {
  app.add_option(
         "--accuracy", level,
         "How much results may be rounded: strict: the model's own sums only; default: also "
         "Winograd's convolutions and Strassen's products; fast: also weights in bf16, on GPUs "
         "products in tf32")
      ->type_name("LEVEL")
      ->capture_default_str();
}

void add_own_memory(CLI::App& app, std::string& text, const std::string& more) {
  app.add_option(
         "--max-memory", text,
         "Limit of the memory that this command uses; needing more is an error. Default: the "
         "memory of this machine or its container" +
             more)
      ->type_name("64M|1G");
}

void add_task_options(CLI::App& app, BuildOptionTexts& texts) {
  add_threads(app, texts.threads);
  add_shapes(app, texts.shapes);
  add_bind(app, texts.bind);
  add_linked_data(app, texts.linked_data);
  add_max_turns(app, texts.max_turns);
  add_device(app, texts.device);
  add_db(app, texts.db);
  app.add_flag("--no-db", texts.no_db, "Use no database: neither read nor store records")
      ->excludes("--db");
  app.add_option(
         "--transfer", texts.transfer,
         "Use schedules of other kernels for kernels without a record: pool: those of all models; "
         "one: those of the most promising model; off: none")
      ->type_name("MODE")
      ->capture_default_str();
  app.add_option(
         "--nearest", texts.nearest,
         "Which other kernels' schedules are tried: shapes: those with the most alike shapes; "
         "spearman: those\nwhose extents have a rank correlation of tau or more with the kernel's, "
         "as in spearman:tau=0.6,sources=48")
      ->type_name("NAME[:OPTION=VALUE,...]")
      ->capture_default_str();
  app.add_option("--exclude-model", texts.exclude_models,
                 "Ignore the records of a model, by its name in the database; repeat per model")
      ->type_name("NAME")
      ->expected(1)
      ->take_all();
  app.add_flag("--no-shipped", texts.no_shipped, "Ignore the records that ship with Hone");
  add_cost(app, texts.cost);
  add_accuracy(app, texts.accuracy);
  add_seed(app, texts.seed);
  app.add_option(
         "--skip-pass", texts.skip_passes,
         "Skip a pass over the graph, to find one that is wrong, or run_together, to run kernels "
         "one by one; repeat per pass")
      ->type_name("PASS")
      ->expected(1)
      ->take_all();
  app.add_option(
         "--also-pass", texts.also_passes,
         "Run a pass that is skipped by default, as it rarely pays: merge_parallel_products")
      ->type_name("PASS")
      ->expected(1)
      ->take_all();
}

void add_build_options(CLI::App& app, BuildOptionTexts& texts) {
  add_task_options(app, texts);
  add_machine(app, texts.machine);
  app.add_option(
         "--refine", texts.refine,
         "A second cost model, named as for --cost, that chooses again among the best few that "
         "--cost predicts for\n"
         "kernels without a record: a score of machine code (hone train --cost static). Options:\n"
         "static.model:candidates=8,weight=0.5: how many it compares, and its share of the decision")
      ->type_name("NAME[:OPTION=VALUE,...]");
  app.add_option(
         "--max-memory", texts.max_memory,
         "Limit of the memory that the library uses when it runs: weights, tensors, code. If\n"
         "larger weights (Winograd's, Strassen's) do not fit, kernels use other algorithms. For a\n"
         "GPU, the memory is the GPU's, and inputs and outputs count")
      ->type_name("64M|1G");
  app.add_option("--prefix", texts.prefix, "Prefix of the library's C symbols")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_flag("--header", texts.header, "Also write the C header: model.h for model.so");
  app.add_flag("--static", texts.static_library,
               "Write a static library, which is also the default for a name that ends in .a");
  app.add_flag("--no-check", texts.no_check,
               "Do not compare the finished library with the model as imported, on random inputs");
}

static Result<int64_t> parse_max_turns(std::string_view text) {
  return of_option("--max-turns", parse_int(text, 1, 1'000'000'000));
}

Result<CompileOptions> parse_build_options(const BuildOptionTexts& texts) {
  CompileOptions options;
  HONE_ASSIGN_OR_RETURN(options.target.threads, parse_threads(texts.threads));
  HONE_ASSIGN_OR_RETURN(options.advanced.seed, parse_seed(texts.seed));
  HONE_RETURN_IF_ERROR(parse_shape_ranges(texts.shapes, options.model));
  HONE_ASSIGN_OR_RETURN(options.model.bind, parse_bound(texts.bind));
  HONE_ASSIGN_OR_RETURN(options.target.max_memory, parse_max_memory(texts.max_memory));
  options.advanced.skip_passes = texts.skip_passes;
  options.advanced.also_passes = texts.also_passes;
  options.records.db = texts.db;
  options.records.use_db = !texts.no_db;
  options.model.linked_data = texts.linked_data;
  HONE_ASSIGN_OR_RETURN(options.model.max_turns, parse_max_turns(texts.max_turns));
  options.target.device = texts.device;
  options.target.machine = texts.machine;
  options.records.transfer = texts.transfer;
  options.records.nearest = texts.nearest;
  options.records.exclude_models = texts.exclude_models;
  options.records.use_shipped = !texts.no_shipped;
  options.advanced.cost = texts.cost;
  options.advanced.refine = texts.refine;
  options.target.accuracy = texts.accuracy;
  options.library.prefix = texts.prefix;
  options.library.header = texts.header;
  options.library.static_library = texts.static_library;
  if (texts.check || texts.no_check) options.library.check = texts.check;
  return options;
}

bool leave_out_new_database(CompileOptions& options) {
  const std::string& db = options.records.db;
  if (!options.records.use_db || db.empty() || db.find("://") != std::string::npos ||
      file_exists(db))
    return false;
  std::error_code ignored;
  const auto path = std::filesystem::absolute(db, ignored);
  if (!std::filesystem::is_directory(path.parent_path(), ignored)) return false;
  options.records.use_db = false;
  return true;
}

void note_new_database(CompileOptions& options) {
  if (leave_out_new_database(options))
    fmt::print(stderr, "database {} does not exist yet\n", options.records.db);
}

void add_model(CLI::App& app, ModelRunTexts& texts) {
  app.add_option("model", texts.model,
                 "The artifact (.so) or ONNX model (.onnx), which is compiled first")
      ->required()
      ->type_name("MODEL");
}

void add_model_run_options(CLI::App& app, ModelRunTexts& texts, const std::string& repeat_text,
                           const std::string& shape_text) {
  app.add_option("--repeat", texts.repeat, repeat_text)->type_name("N")->capture_default_str();
  app.add_option("--machine", texts.machine,
                 "Run it on a machine elsewhere, whose times are printed: grpc://HOST:PORT, where "
                 "hone serve runs, or a file about it")
      ->type_name("MACHINE");
  add_threads(app, texts.threads);
  app.add_option("--time-limit", texts.time_limit,
                 "The most seconds of a run on a GPU; one that takes longer is an error; 0: any")
      ->type_name("S")
      ->capture_default_str();
  add_seed(app, texts.seed);
  add_run_shapes(app, texts.shapes, shape_text);
  add_bind(app, texts.bind);
  add_linked_data(app, texts.linked_data);
  add_max_turns(app, texts.max_turns);
  add_accuracy(app, texts.accuracy);
  add_db(app, texts.db);
  add_own_memory(app, texts.max_memory,
                 ". The library of an .onnx file is compiled to fit, as by compile --max-memory");
  add_json(app, texts.json);
}

// Ranges are those of the library that a model is compiled to.
static Status parse_sizes_of_run(const ModelRunTexts& texts, ModelOptions& model) {
  const bool has_range = std::ranges::any_of(
      texts.shapes, [](const std::string& text) { return text.find("..") != std::string::npos; });
  bool is_compiled = false;
  if (has_range) {
    HONE_ASSIGN_OR_RETURN(is_compiled, is_library(texts.model));
  }
  if (has_range && !is_compiled) return parse_shape_ranges(texts.shapes, model);
  HONE_ASSIGN_OR_RETURN(model.shapes, parse_shapes(texts.shapes));
  return ok_status();
}

Result<ModelRun> parse_model_run(const ModelRunTexts& texts) {
  ModelRun run;
  run.compile.interrupted = &listen_for_interrupt();
  run.compile.records.db = texts.db;
  run.compile.model.linked_data = texts.linked_data;
  HONE_ASSIGN_OR_RETURN(run.compile.model.max_turns, parse_max_turns(texts.max_turns));
  run.compile.target.accuracy = texts.accuracy;
  run.compile.target.machine = texts.machine;
  HONE_ASSIGN_OR_RETURN(run.compile.target.max_memory, parse_max_memory(texts.max_memory));
  HONE_ASSIGN_OR_RETURN(run.compile.target.threads, parse_threads(texts.threads));
  HONE_ASSIGN_OR_RETURN(run.compile.target.time_limit,
                        of_option("--time-limit", parse_real(texts.time_limit, 0, 1e6)));
  HONE_ASSIGN_OR_RETURN(run.seed, parse_seed(texts.seed));
  HONE_ASSIGN_OR_RETURN(run.repeat, parse_count("--repeat", texts.repeat, 1, 1000000));
  HONE_RETURN_IF_ERROR(parse_sizes_of_run(texts, run.compile.model));
  HONE_ASSIGN_OR_RETURN(run.compile.model.bind, parse_bound(texts.bind));
  return run;
}

Result<int> parse_count(std::string_view option, std::string_view text, int low, int high) {
  HONE_ASSIGN_OR_RETURN(const int64_t count, of_option(option, parse_int(text, low, high)));
  return static_cast<int>(count);
}

Result<int64_t> parse_max_memory(std::string_view text) {
  if (text.empty()) return 0;
  return of_option("--max-memory", parse_bytes(text));
}

Result<int> parse_threads(std::string_view text) { return parse_count("--threads", text, 0, 1024); }

Result<uint64_t> parse_seed(std::string_view text) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  HONE_ASSIGN_OR_RETURN(const int64_t seed, of_option("--seed", parse_int(text, 0, kMost)));
  return static_cast<uint64_t>(seed);
}

// Reads the shape of a run. Extents may be 0, as of a past without tokens.
static Result<Shape> parse_run_shape(const std::string& text) {
  constexpr int64_t kMost = int64_t{1} << 40;
  if (text.find("..") != std::string::npos)
    return invalid(
        "found the range '{}', expected one size of each dimension, as a run of a library has",
        text);
  const char separator = text.find('x') != std::string::npos ? 'x' : ',';
  Shape shape;
  for (size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
    end = text.find(separator, begin);
    const Result<int64_t> extent = parse_int(text.substr(begin, end - begin), 0, kMost);
    if (!extent.ok())
      return invalid("'{}' is not a shape, expected lengths from 0 such as 1x3x224x224", text);
    shape.push_back(*extent);
  }
  return shape;
}

Result<std::map<std::string, Shape>> parse_shapes(const std::vector<std::string>& texts) {
  std::map<std::string, Shape> shapes;
  for (const std::string& text : texts) {
    HONE_ASSIGN_OR_RETURN(const auto pair, of_option("--shape", parse_key_value(text)));
    const auto& [name, lengths] = pair;
    HONE_ASSIGN_OR_RETURN(Shape shape, of_option("--shape " + name, parse_run_shape(lengths)));
    if (!shapes.emplace(name, std::move(shape)).second)
      return invalid("--shape: '{}' is given twice", name);
  }
  return shapes;
}

Result<std::pair<std::string, std::string>> parse_file_of_name(const std::string& text) {
  std::error_code ignored;
  for (size_t at = text.find('='); at != std::string::npos; at = text.find('=', at + 1)) {
    if (at > 0 && std::filesystem::exists(text.substr(at + 1), ignored))
      return std::pair(text.substr(0, at), text.substr(at + 1));
  }
  return parse_key_value(text);
}

std::optional<Tensor> parse_number_of_name(const std::string& text) {
  const auto pair = parse_file_of_name(text);
  std::error_code ignored;
  if (!pair.ok() || std::filesystem::exists(pair->second, ignored)) return std::nullopt;
  constexpr double kMost = std::numeric_limits<double>::max();
  constexpr int64_t kTooLarge = int64_t{1} << 53;  // all integers below it are exact as a double
  const Result<int64_t> integer = parse_int(pair->second, INT64_MIN, INT64_MAX);
  if (integer.ok() && (*integer >= kTooLarge || *integer <= -kTooLarge)) {
    Tensor tensor(DType::kI64, {});
    tensor.as<int64_t>()[0] = *integer;
    return tensor;
  }
  const Result<double> number = parse_real(pair->second, -kMost, kMost);
  if (!number.ok()) return std::nullopt;
  Tensor tensor(DType::kF64, {});
  tensor.set(0, *number);
  return tensor;
}

Result<std::map<std::string, Tensor>> parse_bound(const std::vector<std::string>& texts) {
  std::map<std::string, Tensor> numbers;
  std::vector<std::string> files;
  for (const std::string& text : texts) {
    const std::optional<Tensor> number = parse_number_of_name(text);
    if (!number)
      files.push_back(text);
    else if (!numbers.emplace(text.substr(0, text.rfind('=')), *number).second)
      return invalid("--bind: '{}' is given twice", text.substr(0, text.rfind('=')));
  }
  HONE_ASSIGN_OR_RETURN(auto tensors, parse_tensors("--bind", files));
  for (auto& [name, number] : numbers) {
    if (!tensors.emplace(name, std::move(number)).second)
      return invalid("--bind: '{}' is given twice", name);
  }
  return tensors;
}

Result<std::map<std::string, Tensor>> parse_tensors(std::string_view option,
                                                    const std::vector<std::string>& texts) {
  std::map<std::string, Tensor> tensors;
  for (const std::string& text : texts) {
    HONE_ASSIGN_OR_RETURN(const auto pair, of_option(option, parse_file_of_name(text)));
    HONE_ASSIGN_OR_RETURN(Tensor tensor, read_npy(pair.second));
    if (!tensors.emplace(pair.first, std::move(tensor)).second)
      return invalid("{}: '{}' is given twice", option, pair.first);
  }
  return tensors;
}

std::string join_names(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace hone::tool
