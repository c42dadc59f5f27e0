#include "hone/remote/connect_message.h"

#include "hone/base/wire.h"

namespace hone::remote {

std::string encode(const ConnectMessage& m) {
  return wire::Writer().put(m.address).put(m.token).put(m.tls_roots).put(m.tls_name).bytes();
}

Result<ConnectMessage> decode_connect(std::string_view bytes) {
  wire::Reader reader(bytes);
  ConnectMessage m;
  m.address = reader.get_string(), m.token = reader.get_string();
  m.tls_roots = reader.get_string(), m.tls_name = reader.get_string();
  if (!reader.done()) return invalid("a message of where to connect is too short or too long");
  return m;
}

std::string encode(const LostMessage& m) {
  return wire::Writer().put(m.is_final).put(m.text).bytes();
}

Result<LostMessage> decode_lost(std::string_view bytes) {
  wire::Reader reader(bytes);
  LostMessage m;
  m.is_final = reader.get<bool>(), m.text = reader.get_string();
  if (!reader.done()) return invalid("a message of a lost connection is too short or too long");
  return m;
}

}  // namespace hone::remote
