#include "hone/api/doctor/places.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <filesystem>

#include "hone/backend/gpu_tools.h"
#include "hone/base/file.h"
#include "hone/base/status.h"
#include "hone/db/registry.h"

namespace hone::doctor {
namespace {

namespace fs = std::filesystem;
using State = Finding::State;

// Why no file can be made in a folder, which may have to be made first; "" if one can.
std::string why_not_writable(fs::path folder) {
  std::error_code failure;
  folder = fs::absolute(folder, failure);
  while (!fs::exists(folder, failure) && folder.has_relative_path()) folder = folder.parent_path();
  if (!fs::is_directory(folder, failure)) return fmt::format("{} is no folder", folder.string());
  if (access(folder.c_str(), W_OK | X_OK) == 0) return "";
  return fmt::format("{} cannot be written to", folder.string());
}

Finding look_at_server(const std::string& where) {
  const Status opened = db::open_store(where, {.read_only = true, .create = false}).status();
  if (opened.ok()) return {"database", State::kOk, true, db::store_name(where), ""};
  return {"database", State::kMissing, true, opened.message(),
          "see to the server and its address, or use a file: --db FILE"};
}

// Why a file cannot be the database; "" if it can.
std::string why_no_database(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  if (std::string why = why_not_writable(folder.empty() ? "." : folder); !why.empty()) return why;
  if (!file_exists(path)) return "";
  if (access(path.c_str(), W_OK) != 0) return fmt::format("{} cannot be written to", path);
  const Status opened = db::open_store(path, {.read_only = true, .create = false}).status();
  return opened.ok() ? "" : opened.message();
}

}  // namespace

Finding look_at_temporary_folder() {
  Finding finding = {"temporary files", State::kOk, true, temporary_folder(), ""};
  struct statvfs system = {};
  if (const Status made = TempDir::create().status(); !made.ok()) {
    finding.state = State::kMissing;
    finding.found = made.message();
  } else if (statvfs(temporary_folder().c_str(), &system) == 0 &&
             (system.f_flag & ST_NOEXEC) != 0) {
    finding.state = State::kMissing;
    finding.found += " is mounted noexec: no library can be loaded from there";
  }
  if (finding.state != State::kOk) finding.cure = "export TMPDIR=FOLDER";
  return finding;
}

Finding look_at_database(const std::string& where) {
  if (db::is_server(where)) return look_at_server(where);
  const Result<std::string> path =
      where.empty() ? db::default_path() : db::store_path(where, {.read_only = true});
  const std::string why = path.ok() ? why_no_database(*path) : path.status().message();
  if (why.empty()) {
    return {"database", State::kOk, true,
            *path + (file_exists(*path) ? "" : ", which does not exist yet"), ""};
  }
  return {"database", State::kMissing, true, why,
          "name a file that can be written, --db FILE, or a folder, XDG_DATA_HOME"};
}

Finding look_at_code_cache() {
  const std::string folder = backend::gpu_code_folder();
  if (folder.empty())
    return {"cache of GPU code", State::kWarning, false,
            "there is none, so equal code is compiled again", "export HONE_CODE_CACHE=FOLDER"};
  const std::string why = why_not_writable(folder);
  if (why.empty()) return {"cache of GPU code", State::kOk, false, folder, ""};
  return {"cache of GPU code", State::kWarning, false, why, "export HONE_CODE_CACHE=FOLDER"};
}

}  // namespace hone::doctor
