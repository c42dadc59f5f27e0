// tensor/zip.h - ZIP archives in memory, as far as .npz needs them: stored and deflated entries
// below 4 GiB, which are checked by their CRC-32. Encryption, ZIP64 and several disks are errors.
// Every size that is read is checked before it is used.
//
// libzip could do this, but each user would need libzip4, and with it bzip2 and OpenSSL. It also
// reads encrypted entries and other kinds that no .npz has, and it leaves to its caller how much an
// entry may unpack to, so that the checks here would stay.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hone/base/status.h"

namespace hone {

struct ZipEntry {
  std::string name;
  std::string contents;
};

[[nodiscard]] Result<std::vector<ZipEntry>> parse_zip(std::string_view bytes);

// Equal entries give equal bytes, as no times are stored.
[[nodiscard]] Result<std::string> format_zip(std::span<const ZipEntry> entries, bool deflate);

}  // namespace hone
