#include "hone/remote/give_operands.h"

#include <unistd.h>

#include <algorithm>

namespace hone::remote {
namespace {

// For an answer to an offer. Other tuners may be measuring when the server has to make room.
constexpr double kOfferSeconds = 60 + kMostQueueSeconds;

Status send_pieces(Link& link, const measure::Operands& operands, const Digest& digest,
                   int64_t from) {
  const int64_t total = operands.layout().total_bytes;
  while (from < total) {
    Piece piece{digest, from,
                std::string(static_cast<size_t>(std::min(kPieceBytes, total - from)), '\0')};
    const ssize_t read = ::pread(operands.fd(), piece.bytes.data(), piece.bytes.size(), from);
    if (read <= 0) return error(Code::kInternal, "cannot read operands");
    piece.bytes.resize(static_cast<size_t>(read));
    HONE_RETURN_IF_ERROR(link.send(encode(piece)));
    from += read;
  }
  return ok_status();
}

Result<Held> receive_held(Link& link, const Digest& digest,
                          const std::function<Status(const std::string&)>& take_other) {
  for (;;) {
    HONE_ASSIGN_OR_RETURN(const std::string message, link.receive(kOfferSeconds));
    HONE_ASSIGN_OR_RETURN(const Kind kind, kind_of(message));
    if (kind != Kind::kHeld) {
      HONE_RETURN_IF_ERROR(take_other(message));
      continue;
    }
    HONE_ASSIGN_OR_RETURN(Held held, decode<Held>(message));
    if (held.digest == digest) return held;
  }
}

}  // namespace

Result<std::string> give(Link& link, const measure::Operands& operands, const Digest& digest,
                         const std::function<Status(const std::string&)>& take_other) {
  HONE_RETURN_IF_ERROR(link.send(encode(Offer{digest, operands.layout()})));
  HONE_ASSIGN_OR_RETURN(Held held, receive_held(link, digest, take_other));
  if (held.problem.empty() && held.bytes < operands.layout().total_bytes) {
    HONE_RETURN_IF_ERROR(send_pieces(link, operands, digest, held.bytes));
    HONE_ASSIGN_OR_RETURN(held, receive_held(link, digest, take_other));
  }
  return held.problem;
}

}  // namespace hone::remote
