#include "hone/remote/operand_digest.h"

#include <sys/mman.h>

#include <cerrno>

#include "hone/base/file.h"
#include "hone/base/hash.h"
#include "hone/measure/protocol.h"

namespace hone::remote {

Result<Digest> digest_of(const measure::Operands& operands) {
  const std::string layout = measure::encode(measure::OperandsMessage{0, operands.layout()});
  const auto bytes = static_cast<size_t>(operands.layout().total_bytes);
  void* const memory = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, operands.fd(), 0);
  if (memory == MAP_FAILED)
    return error(Code::kIo, "cannot map {} bytes of operands: {}", bytes, errno_text(errno));
  const Digest digest = {hash_bytes(memory, bytes, hash_string(layout, 1)),
                         hash_bytes(memory, bytes, hash_string(layout, 2))};
  munmap(memory, bytes);
  return digest;
}

}  // namespace hone::remote
