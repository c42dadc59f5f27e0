#include "hone/shipped_records.h"

#include <algorithm>
#include <filesystem>

#include "hone/base/file.h"
#include "hone/db/json_lines.h"

namespace hone {
namespace fs = std::filesystem;

std::string shipped_folder() {
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  for (const fs::path& folder :
       {program.parent_path() / "../share/hone/records", fs::path(HONE_RECORDS_FOLDER)}) {
    if (fs::is_directory(folder, ignored)) return folder.lexically_normal().string();
  }
  return "";
}

std::string shipped_file_name(const target::Target& target) {
  const std::string key = target::device_key(target);
  return key.substr(0, key.find('-')) + ".jsonl";
}

Result<std::vector<db::Record>> shipped_records(const target::Target& target,
                                                const std::string& folder) {
  std::vector<fs::path> files;
  std::error_code ignored;
  const fs::path own = fs::path(folder) / shipped_file_name(target);
  if (folder.empty()) return std::vector<db::Record>();
  if (fs::is_regular_file(own, ignored)) {
    files.push_back(own);
  } else {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
      if (entry.path().extension() == ".jsonl") files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
  }
  std::vector<db::Record> records;
  for (const fs::path& file : files) {
    HONE_ASSIGN_OR_RETURN(const std::string text, read_file(file.string()));
    HONE_ASSIGN_OR_RETURN(std::vector<db::Record> some, db::parse_json_lines(text, file.string()));
    std::move(some.begin(), some.end(), std::back_inserter(records));
  }
  return records;
}

}  // namespace hone
