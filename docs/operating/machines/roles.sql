create role replicator login replication password 'replicator-password';
create role chorus login password 'chorus-password';
create database chorus owner chorus;
