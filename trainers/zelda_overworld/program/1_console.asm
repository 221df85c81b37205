; A small game for the NES: a world of 4 x 4 rooms with a cave below every second one, up to eight enemies in a
; room, and twenty things to find. Everything happens in the interrupt of the vertical blank.

; --- what the game model reads -----------------------------------------------------------------------------
frame     = $00
mode      = $01   ; 0 title, 1 menu, 2 play, 3 a room is being built, 4 game over
location  = $02   ; room: row * 16 + column, each 0 to 3
incave    = $03
px        = $04
py        = $05
facing    = $06   ; 0 up, 1 down, 2 left, 3 right
hp        = $07
maxhp     = $08
hurt      = $09   ; frames for which nothing hurts
pad       = $0A   ; A B select start up down left right
before    = $0B
sword     = $0C   ; frames for which the sword is out
swordx    = $0D
swordy    = $0E
seed      = $0F
gems      = $10
kills     = $11
bombs     = $12
keys      = $13
alive     = $14
row       = $15   ; next row of metatiles of the room that is being built
level     = $16
cursor    = $17
equipment = $20   ; twenty bytes
etype     = $40   ; eight enemies
ex        = $48
ey        = $50
ehp       = $58
edir      = $60
etimer    = $68
itemtype  = $70   ; 0 or number of the thing + 1
itemx     = $71
itemy     = $72

; --- scratch -----------------------------------------------------------------------------------------------
col       = $80
newx      = $81
newy      = $82
ptr       = $84
ppulo     = $86
ppuhi     = $87
pending   = $88
index     = $89
ahead     = $8A
oam       = $0200
line      = $0300
tiles     = $0500 ; 22 rows of 32 tiles

.org $C000
reset:
  SEI
  CLD
  LDX #$FF
  TXS
  INX
  STX $2000
  STX $2001
first:
  BIT $2002
  BPL first
  LDA #0
clear:
  STA $00,x
  STA $0300,x
  STA $0500,x
  STA $0600,x
  STA $0700,x
  INX
  BNE clear
  JSR hide
second:
  BIT $2002
  BPL second
  LDA #$3F
  STA $2006
  LDA #0
  STA $2006
  TAX
colours:
  LDA palette,x
  STA $2007
  INX
  CPX #32
  BNE colours
  LDA #$5A
  STA seed
  JSR show_title
forever:
  JMP forever

; --- every frame -------------------------------------------------------------------------------------------
nmi:
  LDA #0
  STA $2003
  LDA #>oam
  STA $4014
  JSR upload
  LDA #%10100000
  STA $2000
  LDA #0
  STA $2005
  STA $2005
  INC frame
  JSR read_pad
  LDA mode
  BNE not_title
  JSR title
  RTI
not_title:
  CMP #1
  BNE not_menu
  JSR menu
  RTI
not_menu:
  CMP #3
  BNE not_build
  JSR build
  RTI
not_build:
  CMP #4
  BNE not_over
  JSR over
  RTI
not_over:
  JSR play
  RTI

read_pad:
  LDA pad
  STA before
  LDA #1
  STA $4016
  LDA #0
  STA $4016
  LDX #8
bits:
  LDA $4016
  LSR
  ROL pad
  DEX
  BNE bits
  RTS

; A row of the room, if one waits, and the hearts.
upload:
  LDA pending
  BEQ hearts
  LDA ppuhi
  STA $2006
  LDA ppulo
  STA $2006
  LDX #0
copy:
  LDA line,x
  STA $2007
  INX
  CPX #64
  BNE copy
  LDA #0
  STA pending
hearts:
  LDA mode
  CMP #2
  BCC no_hearts
  LDA #$20
  STA $2006
  LDA #$62
  STA $2006
  LDX #0
heart:
  LDA #0
  CPX hp
  BCS no_heart
  LDA #$0F
no_heart:
  STA $2007
  INX
  CPX #12
  BNE heart
no_hearts:
  RTS

; --- title and menu ----------------------------------------------------------------------------------------
title:
  LDA pad
  AND #$10
  BEQ stay
  LDA before
  AND #$10
  BNE stay
  LDA #1
  STA mode
  JSR show_menu
stay:
  RTS

menu:
  LDA before
  AND #$30
  BNE stay
  LDA pad
  AND #$20
  BEQ no_select
  INC cursor
  LDA cursor
  CMP #3
  BNE no_select
  LDA #0
  STA cursor
no_select:
  LDA pad
  AND #$10
  BEQ stay
  JMP start

over:
  LDA frame
  AND #$3F
  BNE stay
  LDA #0
  STA mode
  JMP show_title

; Screens are drawn with the picture off, which takes as long as it takes.
wipe:
  LDA #0
  STA $2001
  LDA #$20
  STA $2006
  LDA #0
  STA $2006
  LDY #4
  LDX #0
  TXA
wiping:
  STA $2007
  INX
  BNE wiping
  DEY
  BNE wiping
  RTS

show_title:
  JSR wipe
  JSR hide
  LDA #<words_title
  LDX #>words_title
  JSR print
  JMP lights

show_menu:
  JSR wipe
  LDA #<words_menu
  LDX #>words_menu
  JSR print
lights:
  LDA #0
  STA $2005
  STA $2005
  LDA #%00011110
  STA $2001
  LDA #%10100000
  STA $2000
  RTS

; Texts: address in the picture, letters, 0; a high byte of 0 ends them.
print:
  STA ptr
  STX ptr+1
  LDY #0
text:
  LDA (ptr),y
  BEQ printed
  STA $2006
  INY
  LDA (ptr),y
  STA $2006
  INY
letter:
  LDA (ptr),y
  INY
  CMP #0
  BEQ text
  STA $2007
  JMP letter
printed:
  RTS

hide:
  LDX #0
  LDA #$F8
hiding:
  STA oam,x
  INX
  BNE hiding
  RTS
