#include "hone/measure/operands.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

namespace hone::measure {
namespace {

int64_t aligned(int64_t offset) { return (offset + 63) / 64 * 64; }

OperandLayout make_layout(std::span<const OperandSpec> specs, std::span<const Expected> expected) {
  OperandLayout layout;
  int64_t end = 0;
  const auto place = [&end](int64_t bytes) {
    const int64_t offset = aligned(end);
    end = offset + bytes;
    return offset;
  };
  for (const OperandSpec& s : specs) {
    // Outputs are memory of the worker: they take no room here.
    layout.entries.push_back({s.role, s.bytes, s.data == nullptr ? 0 : place(s.bytes)});
  }
  for (const Expected& e : expected) {
    const auto places = static_cast<int64_t>(e.places.size()),
               values = static_cast<int64_t>(e.values.size());
    const int64_t places_offset = place(places * 8);
    layout.expected.push_back(
        {e.operand, e.dtype, places, places_offset, values, place(values * 8)});
  }
  layout.total_bytes = aligned(end + 1);
  return layout;
}

Status check(std::span<const OperandSpec> specs, std::span<const Expected> expected) {
  for (const OperandSpec& s : specs) {
    if (s.bytes < 0) return invalid("an operand of {} bytes", s.bytes);
    if (s.role != ir::Role::kOutput && s.data == nullptr)
      return invalid("an operand that is read needs data");
  }
  for (const Expected& e : expected) {
    if (e.operand < 0 || e.operand >= static_cast<int>(specs.size()) ||
        specs[static_cast<size_t>(e.operand)].role != ir::Role::kOutput) {
      return invalid("operand {} is expected to have a value but is no output", e.operand);
    }
    const int64_t elements = specs[static_cast<size_t>(e.operand)].bytes / dtype_bytes(e.dtype);
    const size_t count = e.places.empty() ? static_cast<size_t>(elements) : e.places.size();
    if (e.values.size() != count)
      return invalid("{} expected values for {} elements", e.values.size(), count);
    for (const int64_t p : e.places) {
      if (p < 0 || p >= elements)
        return invalid("an expected value at {} of {} elements", p, elements);
    }
  }
  return ok_status();
}

}  // namespace

Result<std::shared_ptr<const Operands>> Operands::reserve(OperandLayout layout) {
  static std::atomic<uint64_t> next_id{1};
  std::shared_ptr<Operands> result(new Operands);
  result->id_ = next_id++;
  result->layout_ = std::move(layout);
  const int64_t total = result->layout_.total_bytes;
  result->fd_ = memfd_create("hone_operands", MFD_CLOEXEC);
  // Reserved at once: a lack of memory is an error here, not a SIGBUS later.
  const int code = result->fd_ < 0 ? errno : posix_fallocate(result->fd_, 0, total);
  if (code != 0)
    return error(Code::kIo, "no shared memory of {} bytes: {}", total, std::strerror(code));
  return std::shared_ptr<const Operands>(std::move(result));
}

Result<std::shared_ptr<const Operands>> Operands::create(std::span<const OperandSpec> specs,
                                                         std::span<const Expected> expected) {
  HONE_RETURN_IF_ERROR(check(specs, expected));
  HONE_ASSIGN_OR_RETURN(std::shared_ptr<const Operands> result,
                        reserve(make_layout(specs, expected)));
  const OperandLayout& layout = result->layout_;
  const auto total = static_cast<size_t>(layout.total_bytes);
  void* memory = mmap(nullptr, total, PROT_READ | PROT_WRITE, MAP_SHARED, result->fd_, 0);
  if (memory == MAP_FAILED)
    return error(Code::kIo, "cannot map {} bytes: {}", total, std::strerror(errno));
  auto* base = static_cast<char*>(memory);
  for (size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].data == nullptr || specs[i].bytes == 0) continue;
    std::memcpy(base + layout.entries[i].offset, specs[i].data,
                static_cast<size_t>(specs[i].bytes));
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto copy = [base](int64_t offset, const auto& from) {
      if (!from.empty()) std::memcpy(base + offset, from.data(), from.size() * 8);
    };
    copy(layout.expected[i].places_offset, expected[i].places);
    copy(layout.expected[i].values_offset, expected[i].values);
  }
  munmap(memory, total);
  return result;
}

Operands::~Operands() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace hone::measure
