import assert from "node:assert/strict";
import {
  create,
  createFileRegistry,
  type DescService,
  fromBinary,
  getOption,
  type MessageInitShape,
} from "@bufbuild/protobuf";
import { type FileDescriptorProto, FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code, createClient } from "@connectrpc/connect";
import { describe, test } from "vitest";
import { json } from "../../../gen/chorus/v1/options_pb.js";
import { http } from "../../../gen/google/api/annotations_pb.js";
import { ServerReflection, type ServerReflectionRequestSchema } from "../../../gen/grpc/reflection/v1/reflection_pb.js";
import { ServerReflection as ServerReflectionAlpha } from "../../../gen/grpc/reflection/v1alpha/reflection_pb.js";
import type { Lifetime } from "../../helpers/lifetime.ts";
import { serveRpc, transports } from "../../helpers/rpc.ts";

type Question = NonNullable<MessageInitShape<typeof ServerReflectionRequestSchema>["messageRequest"]>;

/** A client of one version of the reflection service. */
async function openReflection(t: Lifetime, service: typeof ServerReflection) {
  const { url } = await serveRpc(t, {});
  const ask = async (...questions: Question[]) => {
    const client = createClient(service, transports(url).gRPC);
    const answers = [];
    const requests = (async function* () {
      for (const messageRequest of questions) yield { host: "here", messageRequest };
    })();
    for await (const answer of client.serverReflectionInfo(requests)) answers.push(answer);
    assert.deepEqual(
      answers.map(({ originalRequest }) => originalRequest),
      questions.map((messageRequest) =>
        create(service.method.serverReflectionInfo.input, { host: "here", messageRequest }),
      ),
    );
    assert.ok(answers.every(({ validHost }) => validHost === "here"));
    return answers.map(({ messageResponse }) => messageResponse);
  };
  const files = async (question: Question): Promise<FileDescriptorProto[]> => {
    const [answer] = await ask(question);
    assert.equal(answer?.case, "fileDescriptorResponse", JSON.stringify(question.value));
    return answer.value.fileDescriptorProto.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes));
  };
  return { ask, files };
}

const VERSIONS = [ServerReflection, ServerReflectionAlpha as unknown as typeof ServerReflection];

describe.for(VERSIONS)("$typeName", (service) => {
  test("lists the services", async (t) => {
    const { ask } = await openReflection(t, service);
    const [answer] = await ask({ case: "listServices", value: "*" });
    assert.equal(answer?.case, "listServicesResponse");
    assert.deepEqual(
      answer.value.service.map(({ name }) => name),
      [
        "chorus.v1.GenerationService",
        "chorus.admin.v1.WorkspaceService",
        "chorus.admin.v1.CreditService",
        "chorus.admin.v1.KeyService",
        "chorus.admin.v1.CapService",
        "chorus.admin.v1.UsageService",
        "chorus.admin.v1.ActivityService",
        "chorus.admin.v1.OperationsService",
        "chorus.admin.v1.AlertService",
        "chorus.admin.v1.MemberService",
        "grpc.health.v1.Health",
        "grpc.reflection.v1.ServerReflection",
        "grpc.reflection.v1alpha.ServerReflection",
      ],
    );
  });

  test("returns a file by name with its dependencies", async (t) => {
    const { files } = await openReflection(t, service);
    const found = await files({ case: "fileByFilename", value: "chorus/v1/generation.proto" });
    assert.deepEqual(found.map(({ name }) => name).toSorted(), [
      "chorus/v1/generation.proto",
      "chorus/v1/options.proto",
      "google/api/annotations.proto",
      "google/api/http.proto",
      "google/protobuf/descriptor.proto",
      "google/protobuf/timestamp.proto",
    ]);
    assert.equal(found[0]?.name, "chorus/v1/generation.proto");
    const registry = createFileRegistry(found[0], (name) => found.find((file) => file.name === name));
    const described = registry.getService("chorus.v1.GenerationService") as DescService;
    assert.equal(getOption(described.method.generate as never, http).pattern.value, "/v1/generate");
    const schema = registry.getMessage("chorus.v1.ResponseFormat.JsonSchema")?.field.schema;
    assert.equal(getOption(schema as never, json).inline, true);
  });

  test("returns a file by a symbol of each kind", async (t) => {
    const { files } = await openReflection(t, service);
    for (const [symbol, file] of [
      ["chorus.v1.GenerationService", "chorus/v1/generation.proto"],
      ["chorus.v1.GenerationService.Generate", "chorus/v1/generation.proto"],
      ["chorus.v1.GenerateRequest", "chorus/v1/generation.proto"],
      ["chorus.v1.GenerateRequest.max_tokens", "chorus/v1/generation.proto"],
      ["chorus.v1.StreamGenerateResponse.Delta", "chorus/v1/generation.proto"],
      ["chorus.v1.StreamGenerateResponse.Delta.text", "chorus/v1/generation.proto"],
      ["chorus.v1.StreamGenerateResponse.event", "chorus/v1/generation.proto"],
      ["chorus.v1.Effort", "chorus/v1/generation.proto"],
      ["chorus.v1.EFFORT_LOW", "chorus/v1/generation.proto"],
      ["chorus.v1.FailureDetail", "chorus/v1/failure.proto"],
      ["google.rpc.RetryInfo", "google/rpc/error_details.proto"],
      ["chorus.v1.json", "chorus/v1/options.proto"],
      ["google.api.http", "google/api/annotations.proto"],
      ["google.protobuf.FieldDescriptorProto.TYPE_BOOL", "google/protobuf/descriptor.proto"],
      ["chorus.admin.v1.Key", "chorus/admin/v1/keys.proto"],
      ["grpc.health.v1.HealthCheckResponse.SERVING", "health/v1/health.proto"],
    ] as const) {
      const [first] = await files({ case: "fileContainingSymbol", value: symbol });
      assert.equal(first?.name, file, symbol);
    }
  });

  test("returns extensions by number, and all extension numbers", async (t) => {
    const { ask, files } = await openReflection(t, service);
    const containingType = "google.protobuf.FieldOptions";
    const value = { containingType, extensionNumber: 51234 };
    assert.equal((await files({ case: "fileContainingExtension", value }))[0]?.name, "chorus/v1/options.proto");
    const [field, method, none] = await ask(
      { case: "allExtensionNumbersOfType", value: containingType },
      { case: "allExtensionNumbersOfType", value: "google.protobuf.MethodOptions" },
      { case: "allExtensionNumbersOfType", value: "chorus.v1.Usage" },
    );
    assert.ok(field?.case === "allExtensionNumbersResponse" && field.value.baseTypeName === containingType);
    assert.deepEqual(field.value.extensionNumber, [51234]);
    assert.deepEqual(
      method?.case === "allExtensionNumbersResponse" && method.value.extensionNumber.toSorted(),
      [51235, 51236, 72295728],
    );
    assert.deepEqual(none?.case === "allExtensionNumbersResponse" && none.value.extensionNumber, []);
  });

  test("answers NotFound for unknown names and keeps the stream open", async (t) => {
    const { ask } = await openReflection(t, service);
    const answers = await ask(
      { case: "fileByFilename", value: "nope.proto" },
      { case: "fileContainingSymbol", value: "chorus.v1.Nope" },
      { case: "fileContainingSymbol", value: "chorus.v1.GenerateRequest.nope" },
      { case: "fileContainingSymbol", value: "chorus.v1.GenerationService.Nope" },
      { case: "fileContainingSymbol", value: "chorus.v1" },
      { case: "fileContainingSymbol", value: "" },
      { case: "fileContainingExtension", value: { containingType: "chorus.v1.Usage", extensionNumber: 1 } },
      { case: "allExtensionNumbersOfType", value: "chorus.v1.Nope" },
    );
    for (const answer of answers) {
      assert.deepEqual(answer.case === "errorResponse" && answer.value.errorCode, Code.NotFound);
    }
  });
});

test("answers InvalidArgument for an empty request", async (t) => {
  const { url } = await serveRpc(t, {});
  const client = createClient(ServerReflection, transports(url).gRPC);
  const requests = (async function* () {
    yield {};
  })();
  for await (const { messageResponse } of client.serverReflectionInfo(requests)) {
    assert.equal(messageResponse.case === "errorResponse" && messageResponse.value.errorCode, Code.InvalidArgument);
  }
});
