/** Returns the time in milliseconds since 1970; tests set it. Where it is optional, the default is the database's. */
export type Clock = () => number;
