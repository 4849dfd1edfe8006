-- Grants of one replica: each replica looks for its own every two seconds, and ends those of dead ones.
create index grants_replica on grants (replica);
