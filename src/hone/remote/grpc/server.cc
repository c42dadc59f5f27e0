#include "hone/remote/grpc/server.h"

#include <arpa/inet.h>
#include <grpcpp/grpcpp.h>
#include <netinet/in.h>
#include <remote.grpc.pb.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <thread>
#include <utility>

#include "hone/base/file.h"
#include "hone/base/input_file.h"

namespace hone::remote {
namespace {

using Stream = grpc::ServerReaderWriter<Frame, Frame>;

constexpr size_t kMostWaiting = 4096;  // messages for a tuner that does not read
constexpr int kMostThreads = 64;

// Takes as long for any two texts of one length.
bool equal(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i)
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  return difference == 0;
}

// Writes messages in a thread of its own: a tuner that reads slowly delays nobody.
class StreamConnection final : public Connection {
 public:
  StreamConnection(grpc::ServerContext& context, Stream& stream)
      : context_(context), stream_(stream), writer_([this] { write(); }) {}
  ~StreamConnection() override = default;

  void send(std::string message) override {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    if (waiting_.size() >= kMostWaiting) {
      // A message must not be missing: the tuner connects again, and the session goes on.
      waiting_.clear(), ended_ = true;
      context_.TryCancel();
      return;
    }
    waiting_.push_back(std::move(message));
    changed_.notify_all();
  }
  void close() override {
    const std::lock_guard lock(mutex_);
    if (!ended_) context_.TryCancel();
  }
  // Writes what waits, and nothing after that. The stream may be gone then.
  void end() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    writer_.join();
  }

 private:
  void write() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return ended_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      Frame frame;
      frame.set_bytes(std::move(waiting_.front()));
      waiting_.pop_front();
      lock.unlock();
      const bool written = stream_.Write(frame);
      lock.lock();
      if (!written) waiting_.clear(), ended_ = true;
    }
  }

  grpc::ServerContext& context_;
  Stream& stream_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> waiting_;
  bool ended_ = false;
  std::thread writer_;
};

class MeasuringService final : public Measuring::Service {
 public:
  MeasuringService(remote::Service& service, std::string token)
      : service_(service), token_(std::move(token)) {}

  grpc::Status Connect(grpc::ServerContext* context, Stream* stream) override {
    const auto& metadata = context->client_metadata();
    const auto token = metadata.find("hone-token");
    if (token == metadata.end()) return {grpc::StatusCode::UNAUTHENTICATED, "there is no token"};
    if (!equal({token->second.data(), token->second.size()}, token_))
      return {grpc::StatusCode::UNAUTHENTICATED, "the token is wrong"};
    const auto connection = std::make_shared<StreamConnection>(*context, *stream);
    std::unique_ptr<remote::Service::Peer> peer = service_.connect(connection);
    Frame frame;
    while (stream->Read(&frame) && peer->take(frame.bytes()).ok()) {
    }
    peer.reset();
    connection->end();
    return grpc::Status::OK;
  }

 private:
  remote::Service& service_;
  const std::string token_;
};

// gRPC does not say why it cannot listen.
Status check_port(const ListenOptions& options) {
  if (options.port == 0) return ok_status();
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(options.port));
  if (::inet_pton(AF_INET, options.address.c_str(), &address.sin_addr) != 1) return ok_status();
  const Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  (void)::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0)
    return ok_status();
  return invalid("cannot listen on port {} of {}: {}; 0 takes one that is free", options.port,
                 options.address, errno_text(errno));
}

}  // namespace

struct GrpcServer::State {
  MeasuringService service;
  int port = 0;
  std::unique_ptr<grpc::Server> server;
};

GrpcServer::GrpcServer(std::unique_ptr<State> state) : state_(std::move(state)) {}

GrpcServer::~GrpcServer() { state_->server->Shutdown(std::chrono::system_clock::now()); }

int GrpcServer::port() const { return state_->port; }

Result<std::unique_ptr<GrpcServer>> GrpcServer::start(Service& service,
                                                      const ListenOptions& options) {
  HONE_RETURN_IF_ERROR(check_port(options));
  std::unique_ptr<State> state(new State{{service, options.token}});
  std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials();
  if (!options.certificate.empty()) {
    grpc::SslServerCredentialsOptions tls;
    tls.pem_key_cert_pairs.push_back({options.key, options.certificate});
    credentials = grpc::SslServerCredentials(tls);
  }
  grpc::ServerBuilder builder;
  // Two servers must not share a port, as one of them would get the tuners of the other.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // A tuner asks whether the connection lives, and so does the server: a board that lost its
  // network does not keep a connection for ever.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1'000);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.SetMaxReceiveMessageSize(static_cast<int>(kMostBytes));
  builder.SetMaxSendMessageSize(static_cast<int>(kMostBytes));
  grpc::ResourceQuota quota("hone-serve");
  quota.SetMaxThreads(kMostThreads);
  builder.SetResourceQuota(quota);
  builder.AddListeningPort(fmt::format("{}:{}", options.address, options.port), credentials,
                           &state->port);
  builder.RegisterService(&state->service);
  state->server = builder.BuildAndStart();
  if (state->server == nullptr || state->port == 0)
    return invalid(
        "cannot listen on port {} of {}{}", options.port, options.address,
        options.certificate.empty() ? "" : ", or the certificate and its key do not fit");
  return std::unique_ptr<GrpcServer>(new GrpcServer(std::move(state)));
}

}  // namespace hone::remote
