// Tokens, roles and tenants of the callers of a real server.
#include <fstream>

#include "tests/integration/open_stream.h"
#include "tests/support/grpc_errors.h"

namespace quire::testing {
namespace {

constexpr char kWorkerToken[] = "worker-0123456789";
constexpr char kAdminToken[] = "admin-0123456789";

class IdentityTest : public ::testing::Test {
 protected:
  template <typename Method, typename Request, typename Response>
  grpc::Status Admin(Method method, const Request& request, Response* response, const char* token) {
    return server_.Call(server_.admin(), method, request, response, token);
  }

  TempFolder tokens_;
  TestServer server_{[this](ServerOptions& options) {
    options.token_file = tokens_.File("tokens");
    std::ofstream(options.token_file) << kWorkerToken << " acme worker\n"
                                      << kAdminToken << " * admin\n";
  }};
};

TEST_F(IdentityTest, CallsNeedATokenWithTheRight) {
  v1::ListPoolsResponse response;
  EXPECT_THAT(Admin(&v1::AdminService::Stub::ListPools, v1::ListPoolsRequest(), &response, ""),
              IsRefused(grpc::UNAUTHENTICATED, "UNAUTHENTICATED"));
  EXPECT_THAT(Admin(&v1::AdminService::Stub::ListPools, v1::ListPoolsRequest(), &response,
                    "wrong-0123456789"),
              IsRefused(grpc::UNAUTHENTICATED, "UNAUTHENTICATED"));
  EXPECT_THAT(
      Admin(&v1::AdminService::Stub::ListPools, v1::ListPoolsRequest(), &response, kWorkerToken),
      IsRefused(grpc::PERMISSION_DENIED, "PERMISSION_DENIED"));
  EXPECT_THAT(
      Admin(&v1::AdminService::Stub::ListPools, v1::ListPoolsRequest(), &response, kAdminToken),
      CallIsOk());
}

TEST_F(IdentityTest, StreamWithoutATokenEndsAtOnce) {
  OpenStream stream(server_, v1::AttachWorkerResponse());
  EXPECT_THAT(stream.Finish(), IsRefused(grpc::UNAUTHENTICATED, "UNAUTHENTICATED"));
}

TEST_F(IdentityTest, TenantIsTheCallersAndForeignOnesAreRefused) {
  TestWorker worker(server_, "w", kWorkerToken);
  worker.Begin(1, 8);
  worker.Commit(1, 8);
  worker.NewStep();
  worker.MustSend();
  v1::PeekPrefixRequest peek;
  for (uint32_t token = 1; token <= 9; ++token) peek.add_tokens(token);
  v1::PeekPrefixResponse found;
  const auto peek_as = [&](const char* token) {
    found.Clear();
    return server_.Call(server_.cache(), &v1::CacheService::Stub::PeekPrefix, peek, &found, token);
  };
  ASSERT_THAT(peek_as(kWorkerToken), CallIsOk());
  EXPECT_EQ(found.tiers(0).reusable_tokens(), 8u);
  // The content belongs to acme, not to no tenant.
  ASSERT_THAT(peek_as(kAdminToken), CallIsOk());
  EXPECT_EQ(found.tiers(0).reusable_tokens(), 0u);
  peek.mutable_namespace_()->set_tenant("acme");
  ASSERT_THAT(peek_as(kAdminToken), CallIsOk());
  EXPECT_EQ(found.tiers(0).reusable_tokens(), 8u);
  peek.mutable_namespace_()->set_tenant("other");
  EXPECT_THAT(peek_as(kWorkerToken), IsRefused(grpc::PERMISSION_DENIED, "PERMISSION_DENIED"));
  v1::BeginOperation* begin = worker.NewStep().add_operations()->mutable_begin();
  begin->set_sequence(2);
  begin->add_tokens(1);
  begin->mutable_namespace_()->set_tenant("other");
  v1::StepResponse response;
  EXPECT_THAT(worker.Send(&response), IsRefused(grpc::PERMISSION_DENIED, "PERMISSION_DENIED"));
}

}  // namespace
}  // namespace quire::testing
