#include "hone/remote/grpc/relay.h"

#include <grpcpp/grpcpp.h>
#include <remote.grpc.pb.h>

#include <mutex>
#include <string_view>
#include <thread>

#include "hone/base/wire.h"
#include "hone/base/worker_child.h"
#include "hone/remote/connect_message.h"
#include "hone/remote/protocol.h"

namespace hone::remote {
namespace {

using Stream = grpc::ClientReaderWriter<Frame, Frame>;
using wire::MessageType;

std::shared_ptr<grpc::Channel> make_channel(const ConnectMessage& to) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(static_cast<int>(kMostBytes));
  arguments.SetMaxSendMessageSize(static_cast<int>(kMostBytes));
  // A peer that lost its power says nothing: it is asked.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 5'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  if (!to.tls_name.empty()) arguments.SetSslTargetNameOverride(to.tls_name);
  std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
  if (!to.tls_roots.empty()) {
    grpc::SslCredentialsOptions tls;
    tls.pem_root_certs = to.tls_roots;
    credentials = grpc::SslCredentials(tls);
  }
  return grpc::CreateCustomChannel(to.address, credentials, arguments);
}

// Returns what a machine's file could say of TLS so that there is a connection, for an error of the
// first attempt.
std::string_view advice(const ConnectMessage& to, std::string_view error) {
  const auto says = [&](std::string_view part) {
    return error.find(part) != std::string_view::npos;
  };
  if (to.tls_roots.empty()) {
    const bool is_closed = says("Socket closed") || says("reset by peer");
    return is_closed ? "; the server may ask for TLS: name the authority of its certificate as "
                       "tls_ca in the machine's file"
                     : "";
  }
  if (says("wrong version number"))
    return "; the server may have no TLS: start it with --tls-cert, or leave tls_ca out of the "
           "machine's file";
  if (says("certificate verify failed"))
    return "; the server's certificate is not from the authority that the machine's file names as "
           "tls_ca";
  if (says("not in peer certificate"))
    return "; the machine's file may say as tls_name which name the certificate has";
  return "";
}

// What the tuner says to its user.
LostMessage lost(const grpc::Status& status, const ConnectMessage& to, bool was_connected) {
  const std::string text = status.error_message();
  switch (status.error_code()) {
    case grpc::StatusCode::OK: return {false, "the server ended the connection"};
    case grpc::StatusCode::UNAUTHENTICATED: return {true, text};
    case grpc::StatusCode::UNIMPLEMENTED: return {true, "what listens there is no hone serve"};
    case grpc::StatusCode::RESOURCE_EXHAUSTED: return {true, text};
    case grpc::StatusCode::UNAVAILABLE: {
      // "failed to connect to all addresses; last error: UNKNOWN: ipv4:...: Connection refused"
      const size_t last = text.rfind(": ");
      std::string why = last == std::string::npos ? text : text.substr(last + 2);
      if (!was_connected) why += advice(to, text);
      return {false, std::move(why)};
    }
    default: return {false, text};
  }
}

}  // namespace

int relay_main(int fd) {
  isolate_worker(fd);
  if (!wire::send_message(fd, MessageType::kHello, "").ok()) return 1;
  const Result<wire::Message> first = wire::receive_message(fd, -1);
  if (!first.ok() || first->type != MessageType::kConnect) return 1;
  const Result<ConnectMessage> to = decode_connect(first->body);
  if (!to.ok()) return 1;

  const std::unique_ptr<Measuring::Stub> stub = Measuring::NewStub(make_channel(*to));
  grpc::ClientContext context;
  context.AddMetadata("hone-token", to->token);
  const std::unique_ptr<Stream> stream = stub->Connect(&context);
  std::mutex writing;
  bool ended = false;
  std::thread reader([&] {
    Frame frame;
    bool is_wanted = true;  // the tuner is there
    bool was_connected = false;
    while (is_wanted && stream->Read(&frame)) {
      was_connected = true;
      is_wanted = wire::send_message(fd, MessageType::kFrame, frame.bytes()).ok();
    }
    if (!is_wanted) context.TryCancel();
    const std::lock_guard lock(writing);
    ended = true;
    (void)wire::send_message(fd, MessageType::kLost,
                             encode(lost(stream->Finish(), *to, was_connected)));
  });
  for (;;) {
    Result<wire::Message> message = wire::receive_message(fd, -1);
    if (!message.ok()) break;
    Frame frame;
    frame.set_bytes(std::move(message->body));
    const std::lock_guard lock(writing);
    if (!ended) (void)stream->Write(frame);  // the reader learns why it failed
  }
  context.TryCancel();
  reader.join();
  return 0;
}

}  // namespace hone::remote
