#include "output.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <list>

#include "hone/base/printable.h"

namespace hone::tool {
namespace {

struct Filter {
  int descriptor = 1;
  std::string rest;  // the beginning of a character whose end is yet to come
};

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

// How many bytes at the end may be the beginning of a character of UTF-8.
size_t unfinished(std::string_view text) {
  for (size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xc0) == 0x80) continue;
    const size_t bytes = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return bytes > back ? back : 0;
  }
  return 0;
}

ssize_t write_filtered(void* cookie, const char* data, size_t size) {
  Filter& filter = *static_cast<Filter*>(cookie);
  std::string text = std::move(filter.rest);
  text.append(data, size);
  const size_t whole = text.size() - unfinished(text);
  filter.rest = text.substr(whole);
  const std::string shown = printable_lines(std::string_view(text).substr(0, whole));
  return write_all(filter.descriptor, shown) ? static_cast<ssize_t>(size) : 0;
}

int close_filter(void* cookie) {
  Filter* const filter = static_cast<Filter*>(cookie);
  return write_all(filter->descriptor, printable_lines(filter->rest)) ? 0 : EOF;
}

}  // namespace

std::FILE* filtered_output(int descriptor) {
  static auto* const filters = new std::list<Filter>;  // the C library writes after destructors
  Filter* const filter = &filters->emplace_back(Filter{descriptor, ""});
  const cookie_io_functions_t functions = {nullptr, write_filtered, nullptr, close_filter};
  std::FILE* const stream = fopencookie(filter, "w", functions);
  if (stream != nullptr && isatty(descriptor) == 1) setvbuf(stream, nullptr, _IOLBF, BUFSIZ);
  return stream;
}

std::FILE* report_output(const std::string& written_file) {
  struct stat file, output;
  const bool same = ::stat(written_file.c_str(), &file) == 0 &&
                    ::fstat(STDOUT_FILENO, &output) == 0 && file.st_dev == output.st_dev &&
                    file.st_ino == output.st_ino && !S_ISCHR(output.st_mode);
  if (!same) return stdout;
  static std::FILE* const errors = filtered_output(STDERR_FILENO);
  if (errors == nullptr) return stderr;
  setvbuf(errors, nullptr, _IOLBF, BUFSIZ);
  return errors;
}

}  // namespace hone::tool
