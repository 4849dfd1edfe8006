/** The first and the last time that the store and a `google.protobuf.Timestamp` can both express, in ms since 1970. */
export const FIRST_TIME = Date.parse("0001-01-01T00:00:00Z");
export const LAST_TIME = Date.parse("9999-12-31T23:59:59.999Z");
