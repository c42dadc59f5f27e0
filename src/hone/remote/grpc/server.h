// remote/grpc/server.h - the network of a server that measures for tuners elsewhere, by gRPC. This
// folder alone knows gRPC and what protoc generates.
#pragma once

#include <memory>
#include <string>

#include "hone/remote/service.h"

namespace hone::remote {

struct ListenOptions {
  std::string address = "127.0.0.1";  // the interface's; 0.0.0.0: all interfaces
  int port = 0;                       // 0: any that is free
  std::string token;                  // that callers must have
  std::string certificate, key;       // TLS's, as PEM; empty: no TLS
};

class GrpcServer {
 public:
  // It listens until the object is destroyed. The error of a port in use names it.
  [[nodiscard]] static Result<std::unique_ptr<GrpcServer>> start(Service& service,
                                                                 const ListenOptions& options);
  ~GrpcServer();
  GrpcServer(const GrpcServer&) = delete;
  GrpcServer& operator=(const GrpcServer&) = delete;
  [[nodiscard]] int port() const;

 private:
  struct State;
  explicit GrpcServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace hone::remote
