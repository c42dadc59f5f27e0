// remote/service.h - a server that measures for tuners elsewhere, without the network: whoever has
// a connection passes its messages in and out.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "hone/remote/session.h"

namespace hone::remote {

struct ServiceOptions {
  int64_t operand_bytes = 0;      // size of the cache of operands; 0: a quarter of the memory
  Turns::MakeRunner make_runner;  // how this machine measures
  ModelHost::Start start_model;   // how a process that runs a model is started
  target::Target target;          // the machine
  std::string hone;               // the version of Hone
};

class Service {
 public:
  // It is an error if this machine cannot measure.
  [[nodiscard]] static Result<std::unique_ptr<Service>> create(ServiceOptions options);

  // One connection's part of the service.
  class Peer {
   public:
    ~Peer();  // a session that is idle then ends with it
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;
    // Takes the next message. After an error, which has been sent as a refusal, the connection is
    // to be closed.
    [[nodiscard]] Status take(std::string_view message);

   private:
    friend class Service;
    Peer(Service& service, std::shared_ptr<Connection> connection)
        : service_(service), connection_(std::move(connection)) {}
    [[nodiscard]] Status greet(std::string_view message);
    Service& service_;
    std::shared_ptr<Connection> connection_;
    std::shared_ptr<Session> session_;  // null before the hello
  };
  [[nodiscard]] std::unique_ptr<Peer> connect(std::shared_ptr<Connection> connection);

 private:
  Service(ServiceOptions options, std::unique_ptr<measure::Runner> runner, std::string instance);
  // Finds or makes a session; the caller holds the mutex until a connection is attached to it.
  [[nodiscard]] Result<std::shared_ptr<Session>> session_of(const std::string& name);
  [[nodiscard]] Status make_room_for_session();

  const ServiceOptions options_;
  const std::string instance_, boot_;
  OperandStore store_;
  Turns turns_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Session>> sessions_;
};

}  // namespace hone::remote
