#include "command.h"

#include "interrupt.h"

namespace hone::tool {

int exit_code(Code code) {
  switch (code) {
    case Code::kOk: return kExitOk;
    case Code::kCancelled: return interrupt_exit_code();
    case Code::kInternal: return kExitInternal;
    case Code::kInvalid:
    case Code::kNotFound:
    case Code::kUnsupported:
    case Code::kIo:
    case Code::kTimeout: return kExitBadInput;
  }
  return kExitInternal;
}

std::string one_line(std::string_view message) {
  std::string line;
  for (const char c : message) {
    const bool blank = c == ' ' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    if (!blank) {
      line += c;
    } else if (!line.empty() && line.back() != ' ') {
      line += ' ';
    }
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

}  // namespace hone::tool
