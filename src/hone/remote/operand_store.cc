#include "hone/remote/operand_store.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "hone/base/file.h"
#include "hone/remote/operand_digest.h"

namespace hone::remote {
namespace {

Status write_at(int fd, std::string_view bytes, int64_t offset) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd, bytes.data(), bytes.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return error(Code::kIo, "cannot keep operands: {}", errno_text(errno));
    bytes.remove_prefix(static_cast<size_t>(written));
    offset += written;
  }
  return ok_status();
}

}  // namespace

int64_t OperandStore::held_bytes() const {
  const std::lock_guard lock(mutex_);
  return held_bytes_;
}

OperandStore::Entries::iterator OperandStore::find(const Digest& digest) {
  return std::find_if(entries_.begin(), entries_.end(),
                      [&](const Entry& entry) { return entry.digest == digest; });
}

Status OperandStore::make_room(int64_t bytes) {
  if (bytes > most_bytes_)
    return error(Code::kUnsupported,
                 "operands of {} bytes, but the server's cache holds {} (hone serve --cache)",
                 bytes, most_bytes_);
  for (auto it = entries_.begin(); it != entries_.end() && held_bytes_ + bytes > most_bytes_;) {
    if (it->operands.use_count() > 1) {  // somebody keeps it
      ++it;
      continue;
    }
    held_bytes_ -= it->total();
    it = entries_.erase(it);
  }
  if (held_bytes_ + bytes <= most_bytes_) return ok_status();
  return error(Code::kUnsupported,
               "operands of {} bytes do not fit beside those in use in the server's cache of {} "
               "bytes (hone serve --cache)",
               bytes, most_bytes_);
}

Result<OperandStore::State> OperandStore::offer(const Offer& offer) {
  const std::lock_guard lock(mutex_);
  if (const auto it = find(offer.digest); it != entries_.end()) {
    entries_.splice(entries_.end(), entries_, it);
    return it->state();
  }
  const int64_t bytes = offer.layout.total_bytes;
  HONE_RETURN_IF_ERROR(make_room(bytes));
  HONE_ASSIGN_OR_RETURN(std::shared_ptr<const measure::Operands> operands,
                        measure::Operands::reserve(offer.layout));
  held_bytes_ += bytes;
  entries_.push_back({offer.digest, std::move(operands)});
  return entries_.back().state();
}

Result<OperandStore::State> OperandStore::add(const Piece& piece) {
  const std::lock_guard lock(mutex_);
  const auto it = find(piece.digest);
  if (it == entries_.end())
    return error(Code::kIo, "the server has no room for these operands any more");
  const auto size = static_cast<int64_t>(piece.bytes.size());
  // Another tuner may send the same operands: what is there already is passed over.
  if (piece.offset < 0 || piece.offset > it->have || size > it->total() - piece.offset)
    return invalid("a part of {} bytes at {} of operands of {} bytes, of which {} are there", size,
                   piece.offset, it->total(), it->have);
  if (piece.offset + size > it->have) {
    HONE_RETURN_IF_ERROR(write_at(it->operands->fd(), piece.bytes, piece.offset));
    it->have = piece.offset + size;
    if (it->have == it->total()) {
      const Result<Digest> digest = digest_of(*it->operands);
      if (!digest.ok() || *digest != piece.digest) {
        held_bytes_ -= it->total();
        entries_.erase(it);
        return digest.ok() ? error(Code::kIo, "operands were damaged on their way")
                           : digest.status();
      }
    }
  }
  return it->state();
}

}  // namespace hone::remote
