// hone dataset split, import, export: what was measured as training data.
#include "hone/base/options.h"
#include "hone/dataset.h"

#include "command.h"
#include "command_files.h"
#include "option_texts.h"
#include "unused_options.h"

namespace hone::tool {
namespace {

struct SplitTexts {
  std::string db, output, by = "task", fraction = "0.1", validation = "0.1", seed = "1";
  std::vector<std::string> held_out;
};

Status split(const SplitTexts& texts, const CLI::App& app) {
  SplitOptions options;
  HONE_ASSIGN_OR_RETURN(options.by, parse_split_by(texts.by));
  if (options.by == SplitBy::kModel || options.by == SplitBy::kDevice) {
    HONE_RETURN_IF_ERROR(
        check_unused(app, {"--fraction"}, "--by within and --by task",
                     fmt::format("--by {} tests by all that --hold-out names", texts.by)));
  }
  HONE_ASSIGN_OR_RETURN(options.fraction,
                        of_option("--fraction", parse_real(texts.fraction, 0, 1)));
  HONE_ASSIGN_OR_RETURN(options.validation,
                        of_option("--validation", parse_real(texts.validation, 0, 1)));
  HONE_ASSIGN_OR_RETURN(options.seed, parse_seed(texts.seed));
  options.held_out = texts.held_out;
  HONE_ASSIGN_OR_RETURN(const SplitSizes sizes, split_dataset(texts.db, texts.output, options));
  fmt::print("wrote {}: {} schedules to train on, {} to validate, {} to test by\n", texts.output,
             sizes.train, sizes.validation, sizes.test);
  return ok_status();
}

struct FileTexts {
  std::string db, file;
};

Status import_data(const FileTexts& texts) {
  HONE_ASSIGN_OR_RETURN(const CopiedTrials copied, import_dataset(texts.file, texts.db));
  fmt::print("{} records added, {} were there before\n", copied.added, copied.known);
  return ok_status();
}

Status export_data(const FileTexts& texts) {
  HONE_ASSIGN_OR_RETURN(const ExportedDataset exported, export_dataset(texts.db, texts.file));
  if (texts.file.ends_with(".npz"))
    fmt::print("wrote {}: {} schedules of {} tasks, {} records\n", texts.file, exported.schedules,
               exported.tasks, exported.records);
  else if (texts.file != "-")
    fmt::print("wrote {}: {} records\n", texts.file, exported.records);
  return ok_status();
}

Command file_command(CLI::App& dataset, const char* name, const char* description, const char* file,
                     Status (*action)(const FileTexts&)) {
  const auto texts = std::make_shared<FileTexts>();
  CLI::App* app = dataset.add_subcommand(name, description);
  app->add_option("file", texts->file, file)->required()->type_name("FILE");
  add_db(*app, texts->db);
  const bool imports = action == import_data;
  return {app, [texts, action] { return action(*texts); },
          [texts, imports](FileRoles& files) {
            add_database_files("--db", texts->db,
                               imports ? DatabaseUse::kWrite : DatabaseUse::kRead, files);
            if (imports)
              files.read("FILE", texts->file);
            else if (texts->file != "-")
              files.written("FILE", texts->file);
          }};
}

}  // namespace

Command dataset_split_command(CLI::App& dataset) {
  const auto texts = std::make_shared<SplitTexts>();
  CLI::App* app = dataset.add_subcommand(
      "split", "Divide a data set into parts for training, validation and testing");
  add_db(*app, texts->db);
  app->add_option("-o,--output", texts->output, "The split to write, for --split-file")
      ->type_name("FILE")
      ->required();
  app->add_option(
         "--by", texts->by,
         "What is divided: within: the schedules of each task, with near duplicates together; "
         "task: tasks; model: the tasks of networks; device: devices")
      ->type_name("WHAT")
      ->capture_default_str();
  app->add_option("--hold-out", texts->held_out,
                  "The test part: networks, or devices as KEY or KEY/THREADS; repeat for more")
      ->type_name("NAME")
      ->expected(1)
      ->take_all();
  app->add_option("--fraction", texts->fraction,
                  "Share of schedules or tasks for testing, with --by within or task")
      ->type_name("SHARE")
      ->capture_default_str();
  app->add_option("--validation", texts->validation, "Share of the others for validation")
      ->type_name("SHARE")
      ->capture_default_str();
  add_seed(*app, texts->seed);
  return {app, [texts, app] { return split(*texts, *app); },
          [texts](FileRoles& files) {
            add_database_files("--db", texts->db, DatabaseUse::kRead, files);
            files.written("--output", texts->output);
          }};
}

Command dataset_import_command(CLI::App& dataset) {
  return file_command(dataset, "import", "Add the records of a file that export wrote, each once",
                      "A file that export wrote: an .npz or JSON lines, by its name", import_data);
}

Command dataset_export_command(CLI::App& dataset) {
  return file_command(
      dataset, "export",
      "Write all records as JSON lines, or for NumPy (.npz) with features and times",
      "The file to write, by its name an .npz or JSON lines; -: standard output", export_data);
}

}  // namespace hone::tool
