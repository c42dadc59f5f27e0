// database.h - the database of measurements: what it has, and its upkeep. Where a database is
// expected (RecordOptions::db), its text is the path of an SQLite file, postgres://user@host/name,
// or empty, which means ~/.local/share/hone/hone.db.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hone/code_figures.h"
#include "hone/export.h"
#include "hone/status.h"

namespace hone {

// Refuses a text that looks like the address of a server but is none, as it may contain a password
// and would otherwise become the name of a file. No message repeats it.
[[nodiscard]] HONE_API Status check_database(std::string_view db);
// Returns the files that the database consists of, whether they exist or not; none for a server.
[[nodiscard]] HONE_API std::vector<std::string> database_files(std::string_view db);
// Returns a name for people: a server's address without user, password and options.
[[nodiscard]] HONE_API std::string database_name(std::string_view db);
// Returns the text with the password of an address hidden, at the same length.
[[nodiscard]] HONE_API std::string without_password(std::string_view db);

// A trial: a schedule of a task that was run on a device.
struct TrialInfo {
  uint64_t task = 0;         // its key
  std::string kernel_class;  // such as "conv2d+bias+relu"
  std::string device;        // its key, as Device::key
  int threads = 1;
  std::string model;      // the model that the task came from; may be empty
  std::string version;    // of compiler and schedules; only times of one version are comparable
  std::string algorithm;  // such as "direct" or "winograd_4"
  std::string accuracy;   // the least TargetOptions::accuracy that allows the schedule
  std::string steps;      // the schedule, one step a line
  std::string outcome;    // "ok", or as FailureSummary::outcome
  double seconds = 0;     // of a run; 0 if the outcome is not "ok"
  bool verified = false;  // its output was compared with the reference
  int64_t unix_time = 0;  // in seconds
  std::optional<CodeFigures> code = {};  // of a GPU, if its binary says
  // The decisions that made the schedule, with their values (docs/formats/db_format.md); may be
  // empty.
  std::string decisions = {};
  std::string message = {};  // why the outcome is not "ok"
  // The part of the task that was computed, as a run of smaller sizes needs it
  // (docs/formats/db_format.md); empty: all of it. Such a trial is not verified.
  std::string part = {};
};

// Which trials; a field that is not set allows any.
struct TrialFilter {
  std::optional<uint64_t> task;
  std::optional<std::string> kernel_class, device, model;
  std::optional<int> threads;
  bool parts = false;  // also trials of parts of a task
};

struct CopiedTrials {
  int64_t added = 0;
  int64_t known = 0;  // trials that the database had already
};

struct DatabaseProblems {
  int64_t trials = 0;                 // number of trials that were looked at
  std::vector<std::string> problems;  // in words
};

struct TidyOptions {
  // Number of verified trials that stay of each task, device, number of threads, version and
  // algorithm: the fastest. A trial that says that a schedule must not be used stays, too.
  int keep = 100;
  int older_than_days = 0;  // younger trials stay
  bool dry_run = false;     // only count what would be removed
};

struct TidyResult {
  int64_t trials = 0, removed = 0;
};

// A database that is open. Calls must not overlap; other processes may use it at the same time.
class HONE_API Database {
 public:
  enum class Access : uint8_t {
    kRead,    // it must exist, and nothing is written
    kUpdate,  // it must exist
    kCreate,  // it is made if it does not exist
    kAdd,     // the same, but a file is not made before something is stored
  };
  [[nodiscard]] static Result<Database> open(const std::string& db = "",
                                             Access access = Access::kRead);
  Database(Database&&) noexcept;
  Database& operator=(Database&&) noexcept;
  ~Database();

  // Calls `visit` for every trial that matches, oldest first, until it fails.
  [[nodiscard]] Status for_each(const TrialFilter& filter,
                                const std::function<Status(TrialInfo&&)>& visit);
  // Adds the trials of a file of JSON lines that write_lines() wrote, each once. If a line is
  // wrong, nothing is added, and the error names it.
  [[nodiscard]] Result<CopiedTrials> read_lines(const std::string& path);
  // Writes trials, also those of parts of a task, to a file, or to standard output for "-", and
  // returns their number.
  [[nodiscard]] Result<int64_t> write_lines(const std::string& path, const TrialFilter& filter);
  // Adds the trials of another database, each once.
  [[nodiscard]] Result<CopiedTrials> merge(Database& other);
  // Checks every page, task and trial. It may take minutes.
  [[nodiscard]] Result<DatabaseProblems> verify();
  // Removes old trials and frees their space.
  [[nodiscard]] Result<TidyResult> tidy(const TidyOptions& options = {});
  // Returns the files from which other machines start (RecordOptions::shipped): their names with
  // their texts. They have the fastest verified schedules; the same trials give the same texts.
  [[nodiscard]] Result<std::map<std::string, std::string>> shipped_files();

 private:
  struct State;
  explicit Database(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace hone
