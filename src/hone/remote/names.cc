#include "hone/remote/names.h"

#include <sys/random.h>

#include <cerrno>
#include <cstdint>
#include <fstream>

#include "hone/base/file.h"
#include "hone/base/hash.h"

namespace hone::remote {

Result<std::string> random_name() {
  uint64_t random[2];
  if (::getrandom(random, sizeof random, 0) != sizeof random)
    return error(Code::kIo, "no random numbers: {}", errno_text(errno));
  return hash_hex(random[0]) + hash_hex(random[1]);
}

std::string boot_name() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string name;
  std::getline(file, name);
  return name;
}

}  // namespace hone::remote
