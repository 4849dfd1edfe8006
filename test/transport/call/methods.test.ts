import assert from "node:assert/strict";
import { test } from "vitest";
import { ChatService } from "../../../gen/chorus/v1/chat_pb.js";
import { GenerationService } from "../../../gen/chorus/v1/generation_pb.js";
import { MessagesService } from "../../../gen/chorus/v1/messages_pb.js";
import { Health } from "../../../gen/health/v1/health_pb.js";
import { CHORUS_SERVICES, methodsOf } from "../../../src/transport/call/methods.ts";

test("every method of the contract declares its callers", () => {
  const methods = methodsOf(CHORUS_SERVICES);
  assert.equal(methods.length, CHORUS_SERVICES.flatMap(({ methods }) => methods).length);
  for (const { desc, requirement, label } of methods) {
    const isCallers = desc.parent.typeName === GenerationService.typeName;
    assert.equal("scope" in requirement, isCallers, `${desc}`);
    assert.equal(label === "admin", !isCallers, `${desc}`);
  }
});

test("refuses to start with a method that does not declare its callers", () => {
  assert.throws(() => methodsOf([...CHORUS_SERVICES, Health]), {
    name: "TypeError",
    message: "rpc grpc.health.v1.Health.Check does not state who may call it. Add the option chorus.v1.access.",
  });
});

test("reads from the contract what takes a prompt, what is charged, and what may repeat an earlier request", () => {
  const methods = methodsOf([...CHORUS_SERVICES, ChatService, MessagesService]);
  const names = (has: "takesPrompt" | "isCharged" | "isRepeatable" | "isReadOnly") =>
    methods.filter((method) => method[has] && "scope" in method.requirement).map(({ desc }) => desc.localName);
  const charged = ["generate", "streamGenerate", "createChatCompletion", "streamChatCompletion"];
  charged.push("createMessage", "streamMessage");
  assert.deepEqual(names("isCharged"), charged);
  assert.deepEqual(names("takesPrompt"), [...charged, "countMessageTokens"]);
  assert.deepEqual(names("isRepeatable"), ["generate", "createChatCompletion", "createMessage"]);
  assert.deepEqual(names("isReadOnly"), ["getGeneration", "quotas", "metrics"]);
});
